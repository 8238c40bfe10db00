/**
 * How long a proxied write waits for each replica that it waits for at all (`relationOf`).
 *
 * A hosted replica is waited for as long as it takes; after one that could not be reached, for HOSTED_OPEN_MS not at all.
 * One that a customer hosts is given EXTERNAL_MS for each step; where it fails, or is slow several times in a row, it is not
 * waited for at all for OPEN_MS. What is not waited for is repaired in the background. The answer says `pending` for whatever
 * was not shown in time.
 */
import type { ConnectedBase } from "./connected-bases";

/** What a replica on a customer's own server is given for a read version, and again to show the write, ms. */
export const EXTERNAL_MS = 250;
/** A replica that failed is not waited for again for so long, ms. */
const OPEN_MS = 60_000;
/** The same of a hosted one, ms: its failure costs each write four seconds, of all that have connected the base. */
const HOSTED_OPEN_MS = 5000;
/** Late answers in a row that count as a failure: the first on a new connection often is one. */
const MOST_LATE = 3;
/** Replicas remembered. */
const MAX_REMEMBERED = 10_000;

interface Known {
  late: number;
  /** performance.now() */
  openUntil: number;
}

const CLOSED: Known = { late: 0, openUntil: Number.NEGATIVE_INFINITY };

/** What became of work that is not waited for beyond its time. */
export type Timely<T> = { isLate: false; result: T } | { isLate: true };

type Replica = Pick<ConnectedBase, "databaseId" | "isExternal">;

export class ReplicaBreaker {
  readonly #waitMs: number;
  /** By database id. */
  readonly #known = new Map<string, Known>();

  constructor(waitMs = EXTERNAL_MS) {
    this.#waitMs = waitMs;
  }

  /** Did the replica fail a moment ago? */
  isOpen({ databaseId }: Replica): boolean {
    return performance.now() < (this.#known.get(databaseId) ?? CLOSED).openUntil;
  }

  /** The replica could not be reached. */
  failed({ databaseId, isExternal }: Replica): void {
    this.#open(databaseId, isExternal ? OPEN_MS : HOSTED_OPEN_MS);
  }

  /**
   * Waits for `work` on the replica for as long as it may take. Late work goes on by itself, and its failure is its own.
   *
   * @param isFailure of what the work gives
   * @throws what the work throws in time
   */
  async inTime<T>(
    { databaseId, isExternal }: Replica,
    work: Promise<T>,
    isFailure: (result: T) => boolean,
  ): Promise<Timely<T>> {
    if (!isExternal) return { isLate: false, result: await work };
    work.then(
      (result) => isFailure(result) && this.#open(databaseId),
      () => this.#open(databaseId),
    );
    const late = Promise.withResolvers<Timely<T>>();
    const timer = setTimeout(() => late.resolve({ isLate: true }), this.#waitMs);
    try {
      const done = work.then((result): Timely<T> => ({ isLate: false, result }));
      const outcome = await Promise.race([done, late.promise]);
      this.#count(databaseId, outcome.isLate);
      return outcome;
    } finally {
      clearTimeout(timer);
    }
  }

  #count(databaseId: string, isLate: boolean): void {
    const { late, openUntil } = this.#known.get(databaseId) ?? CLOSED;
    if (isLate && late + 1 >= MOST_LATE) this.#open(databaseId);
    else this.#remember(databaseId, { late: isLate ? late + 1 : 0, openUntil });
  }

  #open(databaseId: string, ms = OPEN_MS): void {
    this.#remember(databaseId, { late: 0, openUntil: performance.now() + ms });
  }

  #remember(databaseId: string, known: Known): void {
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    this.#known.set(databaseId, known);
  }
}
