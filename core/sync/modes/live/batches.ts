/**
 * Batches of live mode: the run history calls each a sync, and `_sync_meta` follows them.
 *
 * A batch begins when the feed reports a change, and is over when everything that the feed contained at that moment is
 * in the replica, including dependents. A read of the feed that finds no change is not a batch; `_sync_meta` shows it
 * as a sync that changed nothing.
 *
 * R1. `_sync_meta` is never ahead of the truth: everything that the source contained at `started_at` is in SQL at
 * `completed_at`. During a feed gap it does not advance.
 */

import { type BasetideError, isBasetideError } from "../../../errors";
import {
  markSyncCompleted,
  markSyncEnded,
  markSyncStarted,
  markSyncUnchanged,
  type Replica,
} from "../../../replica";
import { endSync, newReport, reportIssues } from "../../engine";
import type { RunReport } from "../../host";
import { MOST_PATIENCE_MS, type WorkKind } from "../../pacing";
import type { DirtySet } from "../../state";

const COUNTED = ["seen", "inserted", "updated", "deleted"] as const;

interface LiveBatch {
  report: RunReport;
  /** When the feed was requested (performance.now()). */
  askedAt: number;
  /**
   * The batch is over when everything before this cursor is in the replica; undefined until the feed's end was
   * reached.
   */
  goal: number | undefined;
  before: { requests: number; waitMs: number };
  /** True if `_sync_meta` shows the batch as running. */
  isMarked: boolean;
  /** Cleared when it fails. */
  marking: Promise<void> | undefined;
}

interface Setting {
  replica: Replica;
  epoch: number;
  dirty: Pick<DirtySet, "readCursor" | "batchCursor" | "wake">;
  /** Returns whether changes are missing from the feed until a scan finds them. */
  hasGap: () => boolean;
  /** Returns why a change of tables is not carried out: until it is, batches fail, though their rows are written. */
  refusal: () => BasetideError | undefined;
  /** The requests that count as those of batches. */
  counts: { requests: number; waitMs: number };
  onRun: (report: RunReport) => Promise<void>;
}

export class LiveBatches {
  readonly #setting: Setting;
  #liveBatch: LiveBatch | undefined;
  /** Collects changes that were reported after the batch's goal was set. */
  #next: LiveBatch | undefined;
  /** A recorded failure that only a completed sync clears. */
  #isFailing: boolean;
  /** When `_sync_meta` was last written with a completed sync (performance.now()). */
  #completedAt = Number.NEGATIVE_INFINITY;
  /** The last read that found the feed's end. */
  #readToEnd: { at: number; date: Date } | undefined;
  /** The error that ended the lease, if it occurred while only `_sync_meta` was written. */
  #lost: BasetideError | undefined;
  /** Pending writes to `_sync_meta`, one after another: otherwise an earlier write could overwrite a later one. */
  #marks: Promise<unknown> = Promise.resolve();

  constructor(setting: Setting, isFailing: boolean) {
    this.#setting = setting;
    this.#isFailing = isFailing;
  }

  get isActive(): boolean {
    return this.#liveBatch !== undefined;
  }

  /** True while there is no batch, and no failure that only a batch clears. */
  get isSettled(): boolean {
    return this.#liveBatch === undefined && !this.#isFailing && this.#lost === undefined;
  }

  /**
   * Records a read of the feed whose changes are in the dirty set now.
   *
   * @param isNews whether it reported any change
   * @param isEnd whether the feed had nothing more
   */
  read(asked: { at: number; date: Date }, isNews: boolean, isEnd: boolean): void {
    if (isEnd) this.#readToEnd = asked;
    if (isNews) {
      if (!this.#liveBatch) this.#begin(this.#newBatch(asked));
      else if (this.#liveBatch.goal !== undefined) this.#next ??= this.#newBatch(asked);
    } else if (isEnd && !this.#liveBatch && !this.#setting.refusal()) {
      if (this.#isFailing) this.#begin(this.#newBatch(asked), false);
      else if (performance.now() - this.#completedAt >= MOST_PATIENCE_MS) this.unchanged(asked.at);
    }
    const latest = this.#next ?? this.#liveBatch;
    if (isEnd && latest && (latest.goal === undefined || isNews)) {
      if (latest === this.#next || latest.goal === undefined) latest.goal = this.#setting.dirty.readCursor;
    }
    this.#setting.dirty.wake.notify();
  }

  /**
   * Advances `_sync_meta` if nothing waits: everything that the source had at `askedAt` (performance.now()) is in SQL.
   * Returns at once.
   */
  unchanged(askedAt: number): void {
    const { replica, epoch, dirty, hasGap, refusal } = this.#setting;
    if (this.#liveBatch || hasGap() || refusal() || dirty.batchCursor < dirty.readCursor) return;
    this.#completedAt = performance.now();
    this.#markInOrder(() => markSyncUnchanged(replica, epoch, performance.now() - askedAt)).catch(
      (error: unknown) => {
        this.#completedAt = Number.NEGATIVE_INFINITY;
        if (!isBasetideError(error, "lease_lost")) return;
        this.#lost = error;
        dirty.wake.notify();
      },
    );
  }

  /** Ends the current batch without completing it. Never fails. */
  async end(): Promise<void> {
    const { replica, epoch } = this.#setting;
    if (this.#liveBatch?.isMarked) await this.#markInOrder(() => endSync(replica, epoch));
  }

  /** Nothing is refused any longer: a batch as of the last read of the feed clears the failure. */
  accepted(): void {
    if (this.#readToEnd && !this.#liveBatch) this.read(this.#readToEnd, false, true);
  }

  /** Adds changes that were applied, or given up, to the current batch. */
  tally(changes: Partial<Pick<RunReport, (typeof COUNTED)[number]>>): void {
    const report = this.#liveBatch?.report;
    if (report) for (const count of COUNTED) report[count] += changes[count] ?? 0;
  }

  /** Records a failure; the batch continues. */
  async failed(error: BasetideError): Promise<void> {
    this.#isFailing = true;
    const startedAt = this.#liveBatch?.report.startedAt ?? new Date();
    await this.#setting.onRun({ ...newReport(), kind: "live", startedAt, error });
  }

  /**
   * Waits until `_sync_meta` shows the batch as running. Call before its first row is written.
   *
   * @throws BasetideError if that cannot be written; the next call tries again
   */
  async started(): Promise<void> {
    if (this.#liveBatch?.isMarked) await this.#mark(this.#liveBatch);
  }

  /** The current batch, once it is over. Fails with `lease_lost` also if only the time had to be written. */
  completing(onCompleted: () => Promise<void>): WorkKind {
    const complete = async () => {
      if (this.#lost) throw this.#lost;
      await this.#complete();
      await onCompleted();
    };
    return {
      most: 1,
      items: () => (this.#lost || this.#isOver() ? [{ id: "batch", run: complete }] : []),
      onFailure: (_, error) => this.failed(error),
    };
  }

  #newBatch({ at, date }: { at: number; date: Date }): LiveBatch {
    const report: RunReport = { ...newReport(), kind: "live", startedAt: date };
    const before = { ...this.#setting.counts };
    return { report, askedAt: at, goal: undefined, before, isMarked: false, marking: undefined };
  }

  #begin(liveBatch: LiveBatch, isNews = true): void {
    this.#liveBatch = liveBatch;
    liveBatch.isMarked = isNews && !this.#setting.hasGap();
    if (liveBatch.isMarked) this.#mark(liveBatch).catch(() => {});
  }

  #markInOrder<T>(mark: () => Promise<T>): Promise<T> {
    const marked = this.#marks.then(mark);
    this.#marks = marked.catch(() => {});
    return marked;
  }

  #mark(liveBatch: LiveBatch): Promise<void> {
    const { replica, epoch } = this.#setting;
    // It must not promise more than the feed was asked for: the batch started when the feed was requested.
    liveBatch.marking ??= this.#markInOrder(() =>
      markSyncStarted(replica, epoch, performance.now() - liveBatch.askedAt),
    ).catch((error) => {
      liveBatch.marking = undefined;
      throw error;
    });
    return liveBatch.marking;
  }

  #isOver(): boolean {
    const goal = this.#liveBatch?.goal;
    return goal !== undefined && this.#setting.dirty.batchCursor >= goal;
  }

  async #complete(): Promise<void> {
    const { report, before, isMarked, askedAt } = this.#liveBatch!;
    const { replica, epoch, counts, onRun, hasGap } = this.#setting;
    const refusal = this.#setting.refusal();
    report.requests = counts.requests - before.requests;
    report.waitMs = Math.round(counts.waitMs - before.waitMs);
    await this.started();
    const isLacking = refusal !== undefined || hasGap();
    if (isMarked && isLacking) await this.#markInOrder(() => markSyncEnded(replica, epoch));
    else if (isMarked) await this.#markInOrder(() => markSyncCompleted(replica, epoch));
    else if (!isLacking) {
      await this.#markInOrder(() => markSyncUnchanged(replica, epoch, performance.now() - askedAt));
    }
    if (refusal) report.error = refusal;
    else {
      this.#completedAt = performance.now();
      report.completedAt = new Date();
    }
    if (report.inserted + report.updated > 0) await reportIssues(replica, report);
    await onRun(report);
    this.#isFailing = refusal !== undefined;
    this.#liveBatch = undefined;
    const next = this.#next;
    this.#next = undefined;
    if (next) this.#begin(next);
  }
}
