/**
 * Limits how long a proxied write waits for each replica, if it waits for the replica at all (`relationOf`).
 *
 * A write waits for a hosted replica as long as it takes; after one could not be reached, writes skip it for
 * HOSTED_OPEN_MS. A replica that a customer hosts gets EXTERNAL_MS for each step; after a failure, or several slow
 * answers in a row, writes skip it for OPEN_MS. After a table was locked, writes of that table skip it for as long. What is
 * skipped is repaired in the background. The answer says `pending` for each replica that did not show the write in time.
 */
import { withTimeout } from "../async";
import { LruMap } from "../lru-map";
import type { ConnectedBase } from "./connected-bases";

/** Time for a replica on a customer's own server to return a read version, and again to show the write, ms. */
export const EXTERNAL_MS = 250;
/** How long writes skip a replica that failed, ms. */
const OPEN_MS = 60_000;
/**
 * The same for a hosted one, ms: its failure costs four seconds for each write of every account that has connected the
 * base.
 */
const HOSTED_OPEN_MS = 5000;
/** Slow answers in a row that count as a failure. One is not enough: the first on a new connection is often slow. */
const MOST_LATE = 3;
/** Maximum number of replicas, and of tables that were locked, remembered. */
const MAX_REMEMBERED = 10_000;

interface Known {
  late: number;
  /** performance.now() */
  openUntil: number;
}

const CLOSED: Known = { late: 0, openUntil: Number.NEGATIVE_INFINITY };

/** The outcome of work with a time limit. */
type Timely<T> = { isLate: false; result: T } | { isLate: true };

type Replica = Pick<ConnectedBase, "databaseId" | "isExternal">;

export class ReplicaBreaker {
  readonly #waitMs: number;
  /** By database id; a table that was locked, by that and the name or id by which clients call it. */
  readonly #known = new LruMap<string, Known>(MAX_REMEMBERED);

  constructor(waitMs = EXTERNAL_MS) {
    this.#waitMs = waitMs;
  }

  /** Did the replica fail a moment ago, or was the table locked, if one is given? */
  isOpen({ databaseId }: Replica, tableRef?: string): boolean {
    const keys = tableRef === undefined ? [databaseId] : [databaseId, tableKey(databaseId, tableRef)];
    return keys.some((key) => performance.now() < (this.#known.get(key) ?? CLOSED).openUntil);
  }

  /** Records that a transaction of somebody else locks the table, which fails no other. */
  locked({ databaseId, isExternal }: Replica, tableRef: string): void {
    this.#open(tableKey(databaseId, tableRef), isExternal ? OPEN_MS : HOSTED_OPEN_MS);
  }

  /** Records that the replica could not be reached. */
  failed({ databaseId, isExternal }: Replica): void {
    this.#open(databaseId, isExternal ? OPEN_MS : HOSTED_OPEN_MS);
  }

  /**
   * Waits for `work` on the replica: for a hosted one as long as it takes, for a customer's for at most EXTERNAL_MS.
   * Late work continues in the background; if it fails, writes skip the replica for OPEN_MS.
   *
   * @param isFailure does this result count as a failure?
   * @throws errors of the work that occur in time
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
    const done = work.then((result): Timely<T> => ({ isLate: false, result }));
    const outcome = await withTimeout(this.#waitMs, (): Timely<T> => ({ isLate: true }), done);
    this.#count(databaseId, outcome.isLate);
    return outcome;
  }

  #count(databaseId: string, isLate: boolean): void {
    const { late, openUntil } = this.#known.get(databaseId) ?? CLOSED;
    if (isLate && late + 1 >= MOST_LATE) this.#open(databaseId);
    else this.#known.set(databaseId, { late: isLate ? late + 1 : 0, openUntil });
  }

  #open(databaseId: string, ms = OPEN_MS): void {
    this.#known.set(databaseId, { late: 0, openUntil: performance.now() + ms });
  }
}

const tableKey = (databaseId: string, tableRef: string) => `${databaseId} ${tableRef}`;
