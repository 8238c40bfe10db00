/** The data that a worker caches about a base's live mode from one lease to the next. */
import { CallBucket } from "../pacing";
import { DirtySet } from "./dirty-set";
import { MissedChanges } from "./missed-changes";

export interface LiveCache {
  dirty: DirtySet;
  missedChanges: MissedChanges;
  /** When the feed last reported a change. */
  changedAt: Date | undefined;
  /** When the feed was last read to its end, and when SQL was last compared with the source (performance.now()). */
  readAt: number;
  comparedAt: number;
  /** Average number of foreground requests per read of the feed, including those that the read leads to. */
  batchCalls: number;
  /** Reads that notifications may cause. */
  bucket: CallBucket;
  /** The feed gap that a scan was started for. */
  gapSeen: Date | null;
}

export function emptyLiveCache(): LiveCache {
  return {
    dirty: new DirtySet(),
    missedChanges: new MissedChanges(),
    changedAt: undefined,
    readAt: Number.NEGATIVE_INFINITY,
    comparedAt: performance.now(),
    batchCalls: 1,
    bucket: new CallBucket(),
    gapSeen: null,
  };
}
