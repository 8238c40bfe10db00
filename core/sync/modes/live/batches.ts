/**
 * Rounds of live mode: what the run history calls a sync there, and what `_sync_meta` goes by.
 *
 * A batch begins when the feed tells of something, and is over when all that the feed held at that moment is in the
 * replica, dependants included. A read of the feed that finds nothing is no batch; `_sync_meta` tells of it as of a sync
 * that changed nothing.
 *
 * R1. `_sync_meta` never promises what is not so: all that the source had at `started_at` is in SQL at `completed_at`.
 *     While changes are missing from the feed it stands still.
 */

import { Notifier } from "../../../async";
import type { RunReport } from "../../../control/bases";
import { type BasetideError, isBasetideError } from "../../../errors";
import {
  markSyncCompleted,
  markSyncEnded,
  markSyncStarted,
  markSyncUnchanged,
  type Replica,
} from "../../../replica";
import { endSync, newReport, reportIssues } from "../../engine";
import type { DirtySet } from "../../state";

const LONGEST_WAIT_MS = 60_000;
/** Reads that find nothing are noted in `_sync_meta` once in so long. */
const UNCHANGED_MS = 5000;

interface LiveBatch {
  report: RunReport;
  /** When the feed was asked (performance.now()). */
  askedAt: number;
  /** Over when everything before this cursor is in the replica; undefined until the feed's end was reached. */
  goal: number | undefined;
  before: { requests: number; waitMs: number };
  /** `_sync_meta` says that it is under way. */
  isMarked: boolean;
  /** Until it has failed. */
  marking: Promise<void> | undefined;
}

interface Setting {
  replica: Replica;
  epoch: number;
  dirty: Pick<DirtySet, "readCursor" | "batchCursor">;
  /** Are changes missing from the feed, until a sweep has found them? */
  hasGap: () => boolean;
  /** What is counted as the batches' own. */
  counts: { requests: number; waitMs: number };
  onRun: (report: RunReport) => Promise<void>;
}

export class LiveBatches {
  readonly #setting: Setting;
  readonly #notifier = new Notifier();
  #liveBatch: LiveBatch | undefined;
  /** What was told after the batch's goal was set. */
  #next: LiveBatch | undefined;
  /** A failure is on record that only a completed sync ends. */
  #isFailing: boolean;
  /** When `_sync_meta` last said that a sync has completed (performance.now()). */
  #completedAt = Number.NEGATIVE_INFINITY;
  /** Why the lease is over, where only `_sync_meta` was written to. */
  #lost: BasetideError | undefined;
  /** What is on its way to `_sync_meta`: one after the other, or an earlier word would be the last. */
  #marks: Promise<unknown> = Promise.resolve();

  constructor(setting: Setting, isFailing: boolean) {
    this.#setting = setting;
    this.#isFailing = isFailing;
  }

  get isActive(): boolean {
    return this.#liveBatch !== undefined;
  }

  /**
   * The feed was read, and what it told is pending now.
   *
   * @param isNews whether it told of anything
   * @param isEnd whether there was nothing more
   */
  read(asked: { at: number; date: Date }, isNews: boolean, isEnd: boolean): void {
    if (isNews) {
      if (!this.#liveBatch) this.#begin(this.#made(asked));
      else if (this.#liveBatch.goal !== undefined) this.#next ??= this.#made(asked);
    } else if (isEnd && !this.#liveBatch) {
      if (this.#isFailing) this.#begin(this.#made(asked), false);
      else if (performance.now() - this.#completedAt >= UNCHANGED_MS) this.unchanged(asked.at);
    }
    const latest = this.#next ?? this.#liveBatch;
    if (isEnd && latest && (latest.goal === undefined || isNews)) {
      if (latest === this.#next || latest.goal === undefined) latest.goal = this.#setting.dirty.readCursor;
    }
    this.#notifier.notify();
  }

  /** Nothing is missing that the source had at `askedAt` (performance.now()), if nothing waits. Returns at once. */
  unchanged(askedAt: number): void {
    const { replica, epoch, dirty, hasGap } = this.#setting;
    if (this.#liveBatch || hasGap() || dirty.batchCursor < dirty.readCursor) return;
    this.#completedAt = performance.now();
    this.#inTurn(() => markSyncUnchanged(replica, epoch, performance.now() - askedAt)).catch(
      (error: unknown) => {
        this.#completedAt = Number.NEGATIVE_INFINITY;
        if (!isBasetideError(error, "lease_lost")) return;
        this.#lost = error;
        this.#notifier.notify();
      },
    );
  }

  /** The batch that is under way will not be completed here. Never fails. */
  async end(): Promise<void> {
    const { replica, epoch } = this.#setting;
    if (this.#liveBatch?.isMarked) await this.#inTurn(() => endSync(replica, epoch));
  }

  /** Something that was told of is in the replica, or has been given up. */
  tally({ seen = 0, inserted = 0, updated = 0, deleted = 0 }: Partial<Changes>): void {
    const report = this.#liveBatch?.report;
    if (report) {
      report.seen += seen;
      report.inserted += inserted;
      report.updated += updated;
      report.deleted += deleted;
    }
    this.#notifier.notify();
  }

  /** Puts a failure on record; the batch goes on. */
  async failed(error: BasetideError): Promise<void> {
    this.#isFailing = true;
    const startedAt = this.#liveBatch?.report.startedAt ?? new Date();
    await this.#setting.onRun({ ...newReport(), kind: "live", startedAt, error });
  }

  /**
   * `_sync_meta` says that a sync is under way. Before anything of it is written.
   *
   * @throws BasetideError it could not be said: whoever asks next has it tried again
   */
  async started(): Promise<void> {
    if (this.#liveBatch?.isMarked) await this.#mark(this.#liveBatch);
  }

  /**
   * Completes batches as they are over, for ever.
   *
   * @throws BasetideError `lease_lost`, also where nothing but the time was to be written
   */
  async keepCompleting(stop: AbortSignal, onCompleted: () => Promise<void>): Promise<void> {
    for (;;) {
      if (this.#lost) throw this.#lost;
      while (this.#isOver()) {
        await this.#complete();
        await onCompleted();
      }
      await this.#notifier.wait(LONGEST_WAIT_MS, stop);
    }
  }

  #made({ at, date }: { at: number; date: Date }): LiveBatch {
    const report: RunReport = { ...newReport(), kind: "live", startedAt: date };
    const before = { ...this.#setting.counts };
    return { report, askedAt: at, goal: undefined, before, isMarked: false, marking: undefined };
  }

  #begin(liveBatch: LiveBatch, isNews = true): void {
    this.#liveBatch = liveBatch;
    liveBatch.isMarked = isNews && !this.#setting.hasGap();
    if (liveBatch.isMarked) this.#mark(liveBatch).catch(() => {});
  }

  #inTurn<T>(mark: () => Promise<T>): Promise<T> {
    const marked = this.#marks.then(mark);
    this.#marks = marked.catch(() => {});
    return marked;
  }

  #mark(liveBatch: LiveBatch): Promise<void> {
    const { replica, epoch } = this.#setting;
    // It must not promise what the feed was not asked for: it started when the feed was asked.
    liveBatch.marking ??= this.#inTurn(() =>
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
    report.requests = counts.requests - before.requests;
    report.waitMs = Math.round(counts.waitMs - before.waitMs);
    await this.started();
    if (isMarked && hasGap()) await this.#inTurn(() => markSyncEnded(replica, epoch));
    else if (isMarked) await this.#inTurn(() => markSyncCompleted(replica, epoch));
    else if (!hasGap()) {
      await this.#inTurn(() => markSyncUnchanged(replica, epoch, performance.now() - askedAt));
    }
    this.#completedAt = performance.now();
    report.completedAt = new Date();
    if (report.inserted + report.updated > 0) await reportIssues(replica, report);
    await onRun(report);
    this.#isFailing = false;
    this.#liveBatch = undefined;
    const next = this.#next;
    this.#next = undefined;
    if (next) this.#begin(next);
  }
}

interface Changes {
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
}
