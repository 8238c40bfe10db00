/**
 * Caches pages while nothing in them has changed.
 *
 * A page is unchanged while it has the same rows, and none of them, nor the schema, nor a table that its computed cells
 * read has changed. Versions only grow and are never reused, so it is enough to compare the number of rows that still
 * exist and the greatest of their versions. If the whole table is unchanged, so is every page of the same list, and no row
 * needs to be looked at: that halves the cost of an answer.
 */
import type { PageBytes } from "./page";

/** The most bytes of cached pages; the oldest are evicted first. */
const MAX_BYTES = 512 * 1024 * 1024;

export interface PageStamp {
  schemaVersion: number;
  foreignVersion: number;
  /** The greatest version among the rows, and their number. */
  rowVersion: number;
  rows: number;
}

/** Tells without looking at the rows that nothing has changed. */
export interface TableStamp {
  schemaVersion: number;
  foreignVersion: number;
  tableVersion: number;
  /** The list that the page is a part of. */
  list: readonly string[];
}

interface Entry extends PageStamp, TableStamp {
  rowIds: readonly string[];
  page: PageBytes;
  bytes: number;
}

export class PageCache {
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  /** @param key also names the part of the list */
  findInTable(key: string, stamp: TableStamp): PageBytes | undefined {
    const entry = this.#entries.get(key);
    return entry?.tableVersion === stamp.tableVersion &&
      entry.list === stamp.list &&
      entry.schemaVersion === stamp.schemaVersion &&
      entry.foreignVersion === stamp.foreignVersion
      ? entry.page
      : undefined;
  }

  find(key: string, rowIds: readonly string[], stamp: PageStamp): PageBytes | undefined {
    const entry = this.#entries.get(key);
    if (
      entry?.rowVersion !== stamp.rowVersion ||
      entry.rows !== stamp.rows ||
      entry.schemaVersion !== stamp.schemaVersion ||
      entry.foreignVersion !== stamp.foreignVersion ||
      !sameIds(entry.rowIds, rowIds)
    )
      return undefined;
    return entry.page;
  }

  keep(key: string, rowIds: readonly string[], stamp: PageStamp & TableStamp, page: PageBytes): void {
    this.#drop(key);
    // About a quarter more for the gzipped form, which is made on demand.
    const bytes = Math.ceil(page.byteLength * 1.25);
    this.#entries.set(key, { ...stamp, rowIds, page, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#drop(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

function sameIds(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
