/**
 * Decides which of several tables that are read at the same time uses the next permit, so that small tables are
 * complete first, and not all at the end.
 *
 * The table that is probably the smallest goes first. Sizes are those of an earlier read, or estimates (`estimateSize`).
 * Until there is one, a table counts as large as the part of it that was read: such tables are read in turn, and the
 * smallest one ends first. A permit that the first table cannot use yet goes to the next one.
 *
 * A request that waits moves ahead of others after minutes, because the source forgets a list that nobody continues.
 */
import type { RateLimiter } from "../../limiter";
import type { TableSize } from "../../source";
import { SECOND_MS } from "../../time-units";
import { QuotaSplit, sweepCallsOf } from "../pacing";
import type { Reader } from "./reader";

/** The longest that a request gives precedence to others. */
const MAX_PATIENCE_MS = 4 * 60_000;

export class TableOrder {
  readonly #split: QuotaSplit;
  /** The number of pages that each table is known to have, or more that were read of it. */
  readonly #tables = new Map<string, { known: number; read: number }>();

  /** @param known how large the tables are, as far as that is known, by id */
  constructor({ limiter, stop }: Pick<Reader, "limiter" | "stop">, known: ReadonlyMap<string, TableSize>) {
    // All requests are of one priority; the pace of the other one does not matter.
    this.#split = new QuotaSplit(limiter, () => ({ every: Number.POSITIVE_INFINITY, gapMs: 0 }), stop);
    for (const [tableId, size] of known) this.estimated(tableId, size);
  }

  /** Takes a better estimate of a table's size. */
  estimated(tableId: string, { records }: TableSize): void {
    this.#table(tableId).known = sweepCallsOf([{ records }]);
  }

  #table(id: string): { known: number; read: number } {
    const table = this.#tables.get(id) ?? { known: 0, read: 0 };
    this.#tables.set(id, table);
    return table;
  }

  /** Returns the reader for one table: its requests keep to the order. */
  readerFor(tableId: string, reader: Reader): Reader {
    const table = this.#table(tableId);
    const acquireSync: RateLimiter["acquireSync"] = async (...call) => {
      const pages = Math.max(table.known, table.read);
      // It gives precedence to those of a table with one page less for a second.
      const patienceMs = Math.min(MAX_PATIENCE_MS, pages * SECOND_MS);
      const held = await this.#split.limiterFor("foreground", patienceMs).acquireSync(...call);
      table.read++;
      return held;
    };
    return { ...reader, limiter: { ...reader.limiter, acquireSync } };
  }
}
