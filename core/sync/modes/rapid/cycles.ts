/**
 * Turns in rapid mode: each is over when every table has been looked at, and the source been asked for it after the cycle
 * began. A cycle is what rapid mode calls a sync: creates and changes of before its start are then in SQL.
 */
import type { RunReport } from "../../../control/bases";
import { type BasetideError, nextStep } from "../../../errors";
import type { PollResult } from "../../engine";
import { newReport } from "../../engine";

export interface Cycle {
  report: RunReport;
  /** performance.now() */
  begunAt: number;
  over: Promise<void>;
}

export class Cycles {
  #pending = new Set<string>();
  #cycle: Cycle = { report: newReport(), begunAt: Number.POSITIVE_INFINITY, over: Promise.resolve() };
  #end = () => {};

  /** Begins a cycle over these tables. Nothing counts for it that began before. */
  begin(tableIds: string[]): Cycle {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#end = resolve;
    this.#pending = new Set(tableIds);
    this.#cycle = { report: { ...newReport(), kind: "rapid" }, begunAt: performance.now(), over: promise };
    if (tableIds.length === 0) resolve();
    return this.#cycle;
  }

  /** A look has ended, or the reading of a table that is rebuilt, which makes the cycle a rebuild. */
  polled(tableId: string, found: PollResult, kind: "rapid" | "rebuild" = "rapid"): void {
    const { report, begunAt } = this.#cycle;
    report.seen += found.seen;
    report.inserted += found.inserted;
    report.updated += found.updated;
    if (kind === "rebuild") report.kind = kind;
    if (found.askedAt >= begunAt) this.leave(tableId);
  }

  /** A look has failed: the cycle goes on with the other tables, and then counts as failed. */
  failed(tableId: string, error: BasetideError): void {
    const { report } = this.#cycle;
    // What waits for the source to end a pause says less than a failure.
    if (!report.error || nextStep[report.error.code] === "wait") report.error = error;
    this.leave(tableId);
  }

  /** The table is done with, or gone. */
  leave(tableId: string): void {
    if (this.#pending.delete(tableId) && this.#pending.size === 0) this.#end();
  }
}
