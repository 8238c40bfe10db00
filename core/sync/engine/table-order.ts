/**
 * Decides which of several tables that are read at the same time uses the next reservation, so that small tables are
 * complete first, and not all at the end.
 *
 * The source does not report how many records a table has. Therefore the table of which the fewest pages have been read
 * goes first: the tables are read in turn, and the smallest one ends first. A table whose size is known from an earlier
 * read counts as that large from the start, so such tables are read one after the other. A reservation that the first
 * table cannot use yet goes to the next one.
 *
 * A request that waits moves ahead of others after minutes, because the source forgets a list that nobody continues.
 */
import type { RateLimiter } from "../../limiter";
import { QuotaSplit } from "../pacing";
import type { Reader } from "./reader";

/** How long a request gives precedence to those of a table with one page less, ms. */
const PAGE_PATIENCE_MS = 1000;
/** The longest that a request gives precedence to others. */
const MAX_PATIENCE_MS = 4 * 60_000;

export class TableOrder {
  readonly #split: QuotaSplit;
  /** The number of pages that each table is known to have, or more that were read of it. */
  readonly #tables: Map<string, { known: number; read: number }>;

  /** @param tables `pages`: how many they had when they were last read, 0 if unknown */
  constructor({ limiter, stop }: Pick<Reader, "limiter" | "stop">, tables: { id: string; pages: number }[]) {
    // All requests are of one priority; the pace of the other one does not matter.
    this.#split = new QuotaSplit(limiter, () => ({ every: Number.POSITIVE_INFINITY, gapMs: 0 }), stop);
    this.#tables = new Map(tables.map(({ id, pages }) => [id, { known: pages, read: 0 }]));
  }

  /** Returns the reader for one table: its requests keep to the order. */
  readerFor(tableId: string, reader: Reader): Reader {
    const table = this.#tables.get(tableId) ?? { known: 0, read: 0 };
    const acquireSync: RateLimiter["acquireSync"] = async (...call) => {
      const pages = Math.max(table.known, table.read);
      const patienceMs = Math.min(MAX_PATIENCE_MS, pages * PAGE_PATIENCE_MS);
      const held = await this.#split.limiterFor("foreground", patienceMs).acquireSync(...call);
      table.read++;
      return held;
    };
    return { ...reader, limiter: { ...reader.limiter, acquireSync } };
  }
}
