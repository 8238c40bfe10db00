/** What a worker remembers of a base's live mode from one lease to the next. */
import { CallBucket } from "../pacing";
import { Pending } from "./dirty-set";
import { Misses } from "./missed-changes";

export interface LiveMemory {
  pending: Pending;
  misses: Misses;
  /** When the feed last told of a change. */
  changedAt: Date | undefined;
  /** When the feed was last read to its end, and SQL last compared with the source (performance.now()). */
  readAt: number;
  comparedAt: number;
  /** Requests in front that a read of the feed costs, with all that it leads to: a mean. */
  roundCalls: number;
  /** Reads that pings may cause. */
  bucket: CallBucket;
  /** The gap that a pass was begun for. */
  gapSeen: Date | null;
}

export function emptyLiveMemory(): LiveMemory {
  return {
    pending: new Pending(),
    misses: new Misses(),
    changedAt: undefined,
    readAt: Number.NEGATIVE_INFINITY,
    comparedAt: performance.now(),
    roundCalls: 1,
    bucket: new CallBucket(),
    gapSeen: null,
  };
}
