/**
 * Turns in rapid mode: each is over when every table has been looked at, and the source been asked for it after the turn
 * began. A turn is what rapid mode calls a sync: creates and changes of before its start are then in SQL.
 */
import type { RunReport } from "../../../control/bases";
import { type BasetideError, nextStep } from "../../../errors";
import type { Found } from "../../engine";
import { newReport } from "../../engine";

export interface Turn {
  report: RunReport;
  /** performance.now() */
  begunAt: number;
  over: Promise<void>;
}

export class Turns {
  #pending = new Set<string>();
  #turn: Turn = { report: newReport(), begunAt: Number.POSITIVE_INFINITY, over: Promise.resolve() };
  #end = () => {};

  /** Begins a turn over these tables. Nothing counts for it that began before. */
  begin(tableIds: string[]): Turn {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#end = resolve;
    this.#pending = new Set(tableIds);
    this.#turn = { report: { ...newReport(), kind: "rapid" }, begunAt: performance.now(), over: promise };
    if (tableIds.length === 0) resolve();
    return this.#turn;
  }

  /** A look has ended, or the reading of a table that is rebuilt, which makes the turn a rebuild. */
  looked(tableId: string, found: Found, kind: "rapid" | "rebuild" = "rapid"): void {
    const { report, begunAt } = this.#turn;
    report.seen += found.seen;
    report.inserted += found.inserted;
    report.updated += found.updated;
    if (kind === "rebuild") report.kind = kind;
    if (found.askedAt >= begunAt) this.leave(tableId);
  }

  /** A look has failed: the turn goes on with the other tables, and then counts as failed. */
  failed(tableId: string, error: BasetideError): void {
    const { report } = this.#turn;
    // What waits for the source to end a pause says less than a failure.
    if (!report.error || nextStep[report.error.code] === "wait") report.error = error;
    this.leave(tableId);
  }

  /** The table is done with, or gone. */
  leave(tableId: string): void {
    if (this.#pending.delete(tableId) && this.#pending.size === 0) this.#end();
  }
}
