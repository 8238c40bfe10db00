/**
 * How many bases each worker is to hold: as many as its capacity is of all capacity.
 *
 * Every worker works it out by itself from the same rows, so the answer must be the same for all of them, and such
 * that it moves as little as possible: what does not divide evenly goes to those who hold more already.
 */

/** A worker as the others see it. */
export interface Holder {
  id: string;
  /** Bases in hand. */
  bases: number;
  /** Bases that it takes at most. */
  capacity: number;
}

/**
 * @returns a share per holder, by its id: never above its capacity, together `jobs` or all there is room for, and
 *   with equal capacities even within one
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
