/**
 * The tables of a base that cannot be read, each with its own error and its own pause between attempts: the other
 * tables do not wait for them.
 *
 * Every mode records here which table has failed or was read. The list survives the lease with the base's row.
 */

import { asBasetideError, BasetideError, errorCodes, nextStep } from "../../errors";
import type { FailingTable } from "../host";
import { itemPauseMs, MOST_PATIENCE_MS } from "../pacing";

interface Failure {
  name: string;
  code: BasetideError["code"];
  message: string;
  since: Date;
  /** In a row. */
  failures: number;
  /** performance.now() */
  nextTryAt: number;
  nextTryDate: Date;
}

export class TableFailures {
  #failures = new Map<string, Failure>();
  /** Tables whose rows are up to date, but which cannot get their new columns. */
  readonly #unchanged = new Map<string, FailingTable>();
  /** Tables for which a single request has been answered since they failed. */
  readonly #answering = new Set<string>();
  /** The tables that such a request is running for. */
  readonly probing = new Set<string>();
  /** How long the source took to answer for tables that were too slow, ms. */
  #answeredInMs = new Map<string, number>();
  /** Called with the complete list whenever it has changed. */
  onChange = (): void => {};

  get size(): number {
    return this.#failures.size;
  }

  get ids(): string[] {
    return [...this.#failures.keys()];
  }

  has(tableId: string): boolean {
    return this.#failures.has(tableId);
  }

  /** Returns whether a sweep of the table may succeed: it does not fail, or has been answered for since. */
  isReadable(tableId: string): boolean {
    return !this.#failures.has(tableId) || this.#answering.has(tableId);
  }

  /** Returns whether its rows cannot be written: only a write shows when that is over. */
  isOfRows(tableId: string): boolean {
    const code = this.#failures.get(tableId)?.code;
    return code === "replica_busy" || code === "replica_refused";
  }

  /** Returns the time until the table may be tried again, ms; 0 or less: now. */
  dueInMs(tableId: string): number {
    return (this.#failures.get(tableId)?.nextTryAt ?? 0) - performance.now();
  }

  /** Returns how long the table's requests may stay unanswered before other tables no longer wait for it, ms. */
  patienceMs(tableId: string): number {
    return patienceAfter(this.#answeredInMs.get(tableId) ?? 0);
  }

  /** Records that a request for a failing table was answered, and how long that took. */
  answered(tableId: string, ms: number): void {
    if (this.#failures.has(tableId)) this.#answering.add(tableId);
    this.#answeredInMs.set(tableId, ms);
  }

  /** Records that the table could not be read. */
  failed({ id, name }: { id: string; name: string }, error: BasetideError): void {
    const known = this.#failures.get(id);
    const failures = (known?.failures ?? 0) + 1;
    const pauseMs = itemPauseMs(failures, error);
    this.#answering.delete(id);
    this.#unchanged.delete(id);
    this.#failures.set(id, {
      name,
      code: error.code,
      message: ofTable(name, error).message,
      since: known?.since ?? new Date(),
      failures,
      nextTryAt: performance.now() + pauseMs,
      nextTryDate: new Date(Date.now() + pauseMs),
    });
    this.onChange();
  }

  /** Runs `work`, and records a failure that is the table's own. @returns whether it has succeeded */
  async attempt(table: { id: string; name: string }, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (!isOfTable(error)) throw error;
      this.failed(table, error);
      return false;
    }
  }

  /** Records that the table is up to date again. @returns whether it was failing */
  read(tableId: string): boolean {
    this.#answering.delete(tableId);
    if (!this.#failures.delete(tableId)) return false;
    this.onChange();
    return true;
  }

  /** Forgets tables that the source no longer has. */
  keepOnly(tables: readonly { id: string }[]): void {
    if (this.size === 0) return;
    const known = new Set(tables.map(({ id }) => id));
    for (const id of this.ids) if (!known.has(id)) this.read(id);
  }

  /** Records that the table cannot get its new columns (`needs_attention`). Its rows are read as before. */
  unchanged({ id, name }: { id: string; name: string }, error: BasetideError): void {
    const { message } = ofTable(name, error);
    const known = this.#unchanged.get(id);
    if (known?.message === message) return;
    const now = new Date().toISOString();
    const since = known?.since ?? now;
    this.#unchanged.set(id, { table_id: id, name, code: error.code, message, since, next_try_at: now });
    this.onChange();
  }

  /** Keeps of those only tables that still have other columns in the source. */
  keepUnchanged(ids: ReadonlySet<string>): void {
    const gone = [...this.#unchanged.keys()].filter((id) => !ids.has(id));
    for (const id of gone) this.#unchanged.delete(id);
    if (gone.length > 0) this.onChange();
  }

  list(): FailingTable[] {
    const failing = [...this.#failures].map(([id, { name, code, message, since, nextTryDate }]) => ({
      table_id: id,
      name,
      code,
      message,
      since: since.toISOString(),
      next_try_at: nextTryDate.toISOString(),
    }));
    return [...failing, ...this.#unchanged.values()];
  }

  /** Continues with what an earlier lease has recorded; the tables are tried at once. */
  restore(list: readonly FailingTable[]): void {
    for (const table of list) {
      const { table_id: id, name, code, message, since, next_try_at } = table;
      if (this.#failures.has(id) || this.#unchanged.has(id)) continue;
      if (code === "needs_attention") {
        this.#unchanged.set(id, table);
        continue;
      }
      const nextTryDate = new Date(next_try_at);
      const facts = { name, code, message, since: new Date(since), nextTryDate };
      this.#failures.set(id, { ...facts, failures: 1, nextTryAt: performance.now() });
    }
  }
}

/** Returns how long a request may stay unanswered before others no longer wait for it, ms, if the last one took this long. */
export function patienceAfter(tookMs: number): number {
  return MOST_PATIENCE_MS + tookMs;
}

/**
 * Returns whether the source does not let the key read something. That is one table, unless it refuses the schema, too.
 */
export function isRefusedRead({ code }: BasetideError): boolean {
  return code === "source_forbidden" || code === "source_key_refused";
}

/** Returns whether the error is about one table, and not about the whole base or one of our databases. */
export function isOfTable(error: BasetideError): boolean {
  const { code, details } = error;
  if (isRefusedRead(error) || (code === "replica_busy" && details.isOfRows)) return true;
  if (nextStep[code] === "check_schema" || nextStep[code] === "restart_table") return true;
  return OF_TABLE.has(code);
}

const OF_TABLE: ReadonlySet<BasetideError["code"]> = new Set([
  "source_unavailable",
  "source_timeout",
  "source_bad_answer",
  "source_rejected",
  "replica_refused",
  "needs_attention",
  // A right that it lacks on the table.
  "destination_invalid",
  "internal",
]);

/** Returns the error with a message that names the table. */
export function ofTable(name: string, error: BasetideError): BasetideError {
  const { code, message, details } = error;
  // The general remedy speaks of the base.
  const said = isRefusedRead(error) ? message.replace(errorCodes[code], "").trim() : message;
  const text = `Table "${name}" is not up to date: ${said || errorCodes[code]}`;
  return new BasetideError(code, text, { cause: error, details });
}
