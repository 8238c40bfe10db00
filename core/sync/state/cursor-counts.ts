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
