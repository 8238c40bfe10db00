/**
 * List iterators: a fixed list of row ids each, deleted after a time without a request.
 */
import { iteratorLost } from "./errors";
import type { Random } from "./random";

const DEFAULT_LIFE_MS = 5 * 60_000;

export interface Iterator {
  readonly id: string;
  readonly tableId: string;
  /** Fixed when the list begins; the rows' cells are read page by page. */
  readonly rowIds: readonly string[];
  /** Where the page of the last token starts. */
  nextIndex: number;
  usedMs: number;
}

export class Iterators {
  readonly #byId = new Map<string, Iterator>();
  readonly #now: () => number;
  readonly #random: Random;
  lifeMs = DEFAULT_LIFE_MS;

  constructor(now: () => number, random: Random) {
    this.#now = now;
    this.#random = random;
  }

  /** Starts a list. The iterator is stored once one of its tokens is given out. */
  start(tableId: string, rowIds: readonly string[]): Iterator {
    return { id: this.#random.id("itr"), tableId, rowIds, nextIndex: 0, usedMs: this.#now() };
  }

  /** The token for the page that starts at `index`. */
  token(iterator: Iterator, index: number): string {
    this.#forgetOld();
    iterator.nextIndex = index;
    this.#byId.set(iterator.id, iterator);
    return `${iterator.id}/${iterator.rowIds[index]!}`;
  }

  /**
   * @returns the iterator of a token and its position; a token can be used again
   * @throws ApiError 422 `LIST_RECORDS_ITERATOR_NOT_AVAILABLE` for one that is old, killed or of another table
   */
  resume(tableId: string, token: string): { iterator: Iterator; index: number } {
    const [id = "", rowId = ""] = token.split("/");
    const iterator = this.#byId.get(id);
    if (!iterator || iterator.tableId !== tableId || this.#isOld(iterator)) throw iteratorLost();
    const { nextIndex, rowIds } = iterator;
    const index = rowIds[nextIndex] === rowId ? nextIndex : rowIds.indexOf(rowId);
    if (index < 0) throw iteratorLost();
    iterator.usedMs = this.#now();
    // Stored in the order of last use, so that old ones come first.
    this.#byId.delete(id);
    this.#byId.set(id, iterator);
    return { iterator, index };
  }

  clear(): void {
    this.#byId.clear();
  }

  #isOld(iterator: Iterator): boolean {
    return this.#now() - iterator.usedMs > this.lifeMs;
  }

  #forgetOld(): void {
    for (const [id, iterator] of this.#byId) {
      if (!this.#isOld(iterator)) return;
      this.#byId.delete(id);
    }
  }
}
