/**
 * Cycles of rapid mode. A cycle is over when every table has been polled by a request that was sent after the cycle
 * began. Rapid mode calls a cycle a sync: all creates and changes from before its start are then in SQL.
 */

import { type BasetideError, nextStep } from "../../../errors";
import type { PollResult } from "../../engine";
import { newReport } from "../../engine";
import type { RunReport } from "../../host";

interface Cycle {
  report: RunReport;
  /** performance.now() */
  begunAt: number;
  over: Promise<void>;
}

export class Cycles {
  #pending = new Set<string>();
  #cycle: Cycle = { report: newReport(), begunAt: Number.POSITIVE_INFINITY, over: Promise.resolve() };
  #end = () => {};

  /** Begins a cycle over these tables. Polls that were sent earlier do not count for it. */
  begin(tableIds: string[]): Cycle {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#end = resolve;
    this.#pending = new Set(tableIds);
    this.#cycle = { report: { ...newReport(), kind: "rapid" }, begunAt: performance.now(), over: promise };
    if (tableIds.length === 0) resolve();
    return this.#cycle;
  }

  /** Records the result of a poll, or of a rebuild, which turns the cycle into a rebuild. */
  polled(tableId: string, found: PollResult, kind: "rapid" | "rebuild" = "rapid"): void {
    const { report, begunAt } = this.#cycle;
    report.seen += found.seen;
    report.inserted += found.inserted;
    report.updated += found.updated;
    if (kind === "rebuild") report.kind = kind;
    if (found.askedAt >= begunAt) this.leave(tableId);
  }

  /** Records a failed poll: the cycle continues with the other tables, and then counts as failed. */
  failed(tableId: string, error: BasetideError): void {
    const { report } = this.#cycle;
    // An error that only means waiting for the source's pause to end is replaced by a more informative one.
    if (!report.error || nextStep[report.error.code] === "wait") report.error = error;
    this.leave(tableId);
  }

  /** Takes tables that are gone out of the cycle. */
  keepOnly(isThere: (tableId: string) => boolean): void {
    for (const id of this.#pending) if (!isThere(id)) this.leave(id);
  }

  /** Takes a table that is done out of the cycle. */
  leave(tableId: string): void {
    if (this.#pending.delete(tableId) && this.#pending.size === 0) this.#end();
  }
}
