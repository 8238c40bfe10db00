/**
 * Counts what live mode misses: records that a sweep found changed and the feed never told of.
 *
 * A sweep may be faster than the feed. So what it found is only a suspicion until the feed has been read to its end
 * some time later and has not named the record meanwhile. What was named not long before is no miss either: it may
 * have been read again before its computed cells were.
 */

/** A record may be named so long before a sweep finds it, or after, ms. */
const NAMED_BEFORE_MS = 60_000;
const NAMED_AFTER_MS = 10_000;

export class MissedChanges {
  /** When each record was named (performance.now()), in the current minute and in the one before, by table. */
  #named = new Map<string, Map<string, number>>();
  #namedBefore = new Map<string, Map<string, number>>();
  #turnedAt = Number.NEGATIVE_INFINITY;
  /** When each was found changed, by table. */
  #suspects = new Map<string, Map<string, number>>();

  /** The feed, or what hangs on what it told of, names these. */
  named(tableId: string, recordIds: Iterable<string>, nowMs: number): void {
    if (nowMs - this.#turnedAt > NAMED_BEFORE_MS) {
      this.#namedBefore = this.#named;
      this.#named = new Map();
      this.#turnedAt = nowMs;
    }
    const named = within(this.#named, tableId);
    const suspects = this.#suspects.get(tableId);
    for (const id of recordIds) {
      named.set(id, nowMs);
      suspects?.delete(id);
    }
  }

  /** Was the record named since then, as far as is remembered? */
  wasNamedSince(tableId: string, recordId: string, sinceMs: number): boolean {
    return (this.#namedAt(tableId, recordId) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
  }

  /** A sweep found these to be other than in the replica. */
  found(tableId: string, recordIds: Iterable<string>, nowMs: number): void {
    const suspects = within(this.#suspects, tableId);
    for (const id of recordIds) {
      const namedAt = this.#namedAt(tableId, id);
      if (namedAt === undefined || nowMs - namedAt > NAMED_BEFORE_MS) suspects.set(id, nowMs);
    }
  }

  /** The feed has been read to its end, asked for at `askedMs`. @returns how many misses are certain now */
  readToEnd(askedMs: number): number {
    let count = 0;
    for (const [tableId, suspects] of this.#suspects) {
      for (const [id, foundMs] of suspects) {
        if (askedMs - foundMs < NAMED_AFTER_MS) continue;
        suspects.delete(id);
        count++;
      }
      if (suspects.size === 0) this.#suspects.delete(tableId);
    }
    return count;
  }

  #namedAt(tableId: string, recordId: string): number | undefined {
    return this.#named.get(tableId)?.get(recordId) ?? this.#namedBefore.get(tableId)?.get(recordId);
  }
}

function within(tables: Map<string, Map<string, number>>, tableId: string): Map<string, number> {
  let records = tables.get(tableId);
  if (!records) {
    records = new Map();
    tables.set(tableId, records);
  }
  return records;
}
