/**
 * Calculates how many bases each worker should hold, in proportion to its capacity.
 *
 * Every worker calculates this by itself from the same rows. The result is therefore deterministic, and moves as
 * few bases as possible: a remainder goes to the workers that already hold more.
 */

/** A worker as other workers see it. */
export interface Holder {
  id: string;
  /** Number of bases that it holds. */
  bases: number;
  /** Largest number of bases that it may hold. */
  capacity: number;
}

/**
 * Divides the jobs among the holders.
 *
 * @returns a share per holder id: at most its capacity, together `jobs` or the total capacity, and differing by at
 *   most one for holders of equal capacity
 */
export function fairShares(jobs: number, holders: Holder[]): Map<string, number> {
  const capacity = holders.reduce((sum, holder) => sum + holder.capacity, 0);
  if (jobs >= capacity) return new Map(holders.map((holder) => [holder.id, holder.capacity]));
  const whole = holders.map((holder) => ({
    ...holder,
    share: Math.floor((jobs * holder.capacity) / capacity),
  }));
  let rest = jobs - whole.reduce((sum, { share }) => sum + share, 0);
  const shares = new Map<string, number>();
  for (const { id, share } of whole.toSorted(byWhatTheyHaveOnTop)) {
    shares.set(id, rest > 0 ? share + 1 : share);
    rest--;
  }
  return shares;
}

type Whole = Holder & { share: number };

function byWhatTheyHaveOnTop(a: Whole, b: Whole): number {
  return b.bases - b.share - (a.bases - a.share) || (a.id < b.id ? -1 : 1);
}
