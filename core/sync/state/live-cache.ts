/** What a worker remembers of a base's live mode from one lease to the next. */
import { CallBucket } from "../pacing";
import { DirtySet } from "./dirty-set";
import { MissedChanges } from "./missed-changes";

export interface LiveCache {
  dirty: DirtySet;
  missedChanges: MissedChanges;
  /** When the feed last told of a change. */
  changedAt: Date | undefined;
  /** When the feed was last read to its end, and SQL last compared with the source (performance.now()). */
  readAt: number;
  comparedAt: number;
  /** Requests in front that a read of the feed costs, with all that it leads to: a mean. */
  batchCalls: number;
  /** Reads that notifications may cause. */
  bucket: CallBucket;
  /** The gap that a pass was begun for. */
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
