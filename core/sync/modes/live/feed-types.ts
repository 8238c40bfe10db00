/**
 * The feed of one base as the rounds of live mode see it: what has changed since it was last read, and a durable cursor.
 *
 * How the source's webhook is kept alive, and how notifications arrive, is behind it.
 */
import type { ChangeBatch } from "../../../source";
import type { Reader } from "../../engine";

export interface Feed {
  /** False: nobody rings, it is to be polled. */
  readonly hasNotifications: boolean;
  /** Changes of before then are not in the feed: a sweep that begins later has to be completed. */
  readonly gapSince: Date | null;
  /** Resolves when notified (true) or after `ms` (false). A notification that came while nobody waited counts. */
  wakeUp(ms: number, signal: AbortSignal): Promise<boolean>;
  /**
   * The next batch after what was read before (in memory), healing whatever is wrong with the webhook: then the batch
   * has a gap. One request in the usual case.
   */
  read(reader: Reader): Promise<FeedBatch>;
  /** Everything before `cursor` is durable. Never moves back for one webhook. */
  save(cursor: number): Promise<void>;
  /** For people to see; cheap: at most every few seconds, unless it changed. */
  recordDue(at: Date, facts: FeedFacts): Promise<void>;
  /** Counts records that only a sweep found changed. */
  addMissedChanges(count: number): Promise<void>;
  /** A sweep of everything that began at `sweptFrom` (performance.now()) is complete. */
  closeFeedGap(sweptFrom: number): Promise<void>;
}

/**
 * A batch, and the cursor that it was asked for with. Cursors only grow for as long as the memory of the base lasts, but
 * for a reader that begins again with the durable one.
 */
export type FeedBatch = ChangeBatch & { from: number };

export interface FeedFacts {
  /** Records known to have changed and not read again yet. */
  waiting: number;
  /** When the feed last told of a change. */
  changedAt?: Date;
}
