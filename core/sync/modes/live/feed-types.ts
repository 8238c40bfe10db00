/**
 * The feed of one base as the batches of live mode see it: the changes since the previous read, and a durable cursor.
 *
 * Hides how the source's webhook is kept alive, and how notifications arrive.
 */
import type { BasetideError } from "../../../errors";
import type { ChangeBatch } from "../../../source";
import type { Reader } from "../../engine";
import type { NotificationState } from "../../host";

export interface Feed {
  /** Whether changes are notified of, or must be polled for. */
  readonly notifications: NotificationState;
  /** Changes from before this time may be missing from the feed: a scan that begins later must complete. */
  readonly gapSince: Date | null;
  /** True while it cannot be read, or is not answered for: scans find the changes meanwhile. */
  readonly isFailing: boolean;
  /** How long a read may stay unanswered before others no longer wait for it, ms. */
  readonly patienceMs: number;
  /** False while it cannot be read, or while it must be checked whether the webhook exists, or whether notifications still arrive. */
  readonly isSettled: boolean;
  /** Resolves when notified (true) or after `ms` (false). A notification that arrived before the call counts. */
  wakeUp(ms: number, signal: AbortSignal): Promise<boolean>;
  /**
   * Returns the next batch after the previous one (in memory). Repairs the webhook if necessary: then the batch has a
   * gap. One request in the usual case.
   */
  read(reader: Reader): Promise<FeedBatch>;
  /** Records why a read has failed, and the time until the next one, ms. */
  recordFailing(error: BasetideError, retryInMs: number): Promise<void>;
  /** Saves that everything before `cursor` is durable. Never moves backward for one webhook. */
  save(cursor: number): Promise<void>;
  /**
   * Records for the console when the feed is read next. Cheap: writes at most every few seconds, unless the facts
   * changed.
   *
   * @returns whether it has written; if not, nothing waits for that
   */
  recordDue(at: Date, facts: FeedFacts): Promise<boolean>;
  /** Records that the feed has omitted changes which a comparison found: its webhook cannot be trusted. */
  recordDrift(): Promise<void>;
  /** Closes the gap after a complete scan that began at `sweptFrom` (performance.now()). */
  closeFeedGap(sweptFrom: number): Promise<void>;
}

/**
 * A batch, and the cursor that it was requested with. Cursors only grow as long as the base's cache lives, unless a
 * reader starts over from the durable one.
 */
export type FeedBatch = ChangeBatch & { from: number };

export interface FeedFacts {
  /** Records that are known to have changed and have not been read again yet. */
  waiting: number;
  /** When the feed last reported a change. */
  changedAt?: Date;
  /** Records that only a sweep found changed, and that were not recorded yet. */
  missed: number;
}
