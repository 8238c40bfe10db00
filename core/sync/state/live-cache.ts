/** The data that a worker caches about a base's live mode from one lease to the next. */
import { CallBucket } from "../pacing";
import { DirtySet } from "./dirty-set";
import { EditedTables } from "./edited-tables";
import { MissedChanges } from "./missed-changes";

export class LiveCache {
  readonly dirty = new DirtySet();
  readonly missedChanges = new MissedChanges();
  readonly editedTables = new EditedTables();
  /** Missed changes that are not recorded yet. */
  missed = 0;
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
}
