/**
 * Decides which of several tables that are read at the same time uses the next reservation, so that they are complete
 * one after the other, small ones first, and not all at the end.
 *
 * The source does not report how many records a table has. Therefore a table belongs to the class of sizes that it has
 * reached: up to 1 page, 5, 21, 85, and so on. Requests of a lower class go first; within a class, the tables go in
 * order. A table is delayed by at most four times its own size, however large the others are, and a reservation that
 * the first table cannot use yet goes to the next one.
 *
 * A request that waits moves ahead of others after minutes, because the source forgets a list that nobody continues.
 */
import type { RateLimiter } from "../../limiter";
import { QuotaSplit } from "../pacing";
import type { Reader } from "./reader";

/** Each class has this many times the pages of the class before it. */
const CLASS_GROWTH = 4;
/** How long a request gives precedence to requests of the next lower class, ms. */
const CLASS_PATIENCE_MS = 60_000;
/** The most classes that are told apart: with the order within a class, a request waits for four minutes at most. */
const LAST_CLASS = 3;

export class TableOrder {
  readonly #split: QuotaSplit;
  readonly #tables: Map<string, { rank: number; pages: number }>;

  /** @param tables in order; `pages`: how many they had when they were last read, 0 if unknown */
  constructor({ limiter, stop }: Pick<Reader, "limiter" | "stop">, tables: { id: string; pages: number }[]) {
    // All requests are of one priority; the pace of the other one does not matter.
    this.#split = new QuotaSplit(limiter, () => ({ every: Number.POSITIVE_INFINITY, gapMs: 0 }), stop);
    const ordered = tables.toSorted((a, b) => a.pages - b.pages);
    this.#tables = new Map(
      ordered.map(({ id, pages }, index) => [
        id,
        { rank: index / tables.length, pages: classOf(pages).first },
      ]),
    );
  }

  /** Returns the reader for one table: its requests keep to the order. */
  readerFor(tableId: string, reader: Reader): Reader {
    const table = this.#tables.get(tableId) ?? { rank: 1, pages: 0 };
    const acquireSync: RateLimiter["acquireSync"] = async (...call) => {
      const patienceMs = (Math.min(LAST_CLASS, classOf(table.pages).number) + table.rank) * CLASS_PATIENCE_MS;
      const held = await this.#split.limiterFor("foreground", patienceMs).acquireSync(...call);
      table.pages++;
      return held;
    };
    return { ...reader, limiter: { ...reader.limiter, acquireSync } };
  }
}

/** Returns the class of the table's next page, and the number of pages of all lower classes. */
function classOf(pages: number): { number: number; first: number } {
  let number = 0;
  let first = 0;
  for (let size = 1; pages >= first + size; size *= CLASS_GROWTH) {
    first += size;
    number++;
  }
  return { number, first };
}
