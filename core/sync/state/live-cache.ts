/** The data that a worker caches about a base's live mode from one lease to the next. */
import { CallBucket } from "../pacing";
import { DirtySet } from "./dirty-set";
import { MissedChanges } from "./missed-changes";

/** How long a table that the schema does not list is not looked for again, ms. */
const UNLISTED_MS = 60_000;
/** Tables that are remembered as not listed. */
const MOST_UNLISTED = 1000;

export class LiveCache {
  readonly dirty = new DirtySet();
  readonly missedChanges = new MissedChanges();
  readonly startedAt = Date.now();
  /** When the feed last reported a change. */
  changedAt: Date | undefined;
  /** When the feed was last read to its end, and when SQL was last compared with the source (performance.now()). */
  readAt = Number.NEGATIVE_INFINITY;
  comparedAt = performance.now();
  /** Average number of foreground requests per read of the feed, including those that the read leads to. */
  batchCalls = 1;
  /** Reads that notifications may cause. */
  readonly bucket = new CallBucket();
  /** The feed gap that a scan was started for. */
  gapSeen: Date | null = null;
  /** Tables that the feed has named and the schema did not list, and when they were looked for (performance.now()). */
  readonly #unlisted = new Map<string, number>();

  /** Returns whether a schema check must look for a table that the schema does not list, and counts it as looked for. */
  isToBeLookedFor(tableId: string, now: number): boolean {
    if (now - (this.#unlisted.get(tableId) ?? Number.NEGATIVE_INFINITY) < UNLISTED_MS) return false;
    if (this.#unlisted.size >= MOST_UNLISTED) this.#unlisted.clear();
    this.#unlisted.set(tableId, now);
    return true;
  }
}
