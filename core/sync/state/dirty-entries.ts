/**
 * The entries of the dirty set: why a record must be read again, how two reports of the same record are merged, and how
 * many entries hold each cursor.
 */
import type { VersionedPage } from "./read-versions";

export interface DirtyRecord {
  /** Cursor of the feed batch that first named it since it was last acknowledged. */
  cursor: number;
  /**
   * `direct`: created or changed; `dependent`: depends on such a record; `destroyed`: reported as deleted by the feed.
   */
  why: "direct" | "dependent" | "destroyed";
  /** Fields whose cells changed; null: all. Only for direct ones. */
  fields: Set<string> | null;
  /** Created, and not known before: no record linked to it. */
  isNew?: boolean;
  /**
   * Destroyed, as of the end of the feed: a read version from before that. The record need not be read again, unless
   * it loses.
   */
  readVersion?: number | undefined;
  /** A read that probably shows this change: it began with the read of the feed. Not for a record that waits already. */
  early?: EarlyImage | undefined;
}

/** An image of a record that is being read, and how the feed says that it looks. */
export interface EarlyImage {
  /** Undefined if it is not in time. */
  answer: Promise<VersionedPage | undefined>;
  /** Cells by field id. */
  told: Readonly<Record<string, unknown>>;
}

export interface DirtyEntry extends DirtyRecord {
  /** When it was last named: a position in the order in which records are named. */
  sequence: number;
  /** How often it was read and did not exist. */
  absences: number;
  /** True if it was in progress and was requeued: it must be read, whatever the feed reports. */
  isReturned?: boolean;
}

/** Merges two entries of the same record, named one after the other. */
export function mergeEntries(earlier: DirtyEntry, later: DirtyEntry): DirtyEntry {
  const merged = { cursor: Math.min(earlier.cursor, later.cursor), early: undefined };
  // A dependent entry does not replace a direct or destroyed one.
  if (later.why === "dependent") return { ...earlier, ...merged, sequence: later.sequence };
  if (later.why === "destroyed" || earlier.why === "dependent") return { ...later, ...merged };
  const fields = earlier.why === "direct" ? union(earlier.fields, later.fields) : null;
  return { ...later, ...merged, fields, isNew: earlier.isNew === true };
}

function union(a: Set<string> | null, b: Set<string> | null): Set<string> | null {
  return a && b ? a.union(b) : null;
}

/**
 * Counts the entries that hold each cursor of the feed: few cursors, many entries. The least cursor with an entry is how
 * far the feed is acknowledged.
 */
export class CursorCounts {
  #counts = new Map<number, number>();
  total = 0;

  add(cursor: number): void {
    this.#counts.set(cursor, (this.#counts.get(cursor) ?? 0) + 1);
    this.total++;
  }

  remove(cursor: number): void {
    const left = this.#counts.get(cursor)! - 1;
    if (left > 0) this.#counts.set(cursor, left);
    else this.#counts.delete(cursor);
    this.total--;
  }

  /** Returns the least cursor that has more entries here than in `without`. */
  least(without?: CursorCounts): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [cursor, count] of this.#counts) {
      if (count > (without ? (without.#counts.get(cursor) ?? 0) : 0)) least = Math.min(least, cursor);
    }
    return least;
  }
}
