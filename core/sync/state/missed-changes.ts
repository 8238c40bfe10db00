/**
 * Counts missed changes: records that a sweep found changed and that the feed never reported.
 *
 * A sweep may be faster than the feed. So a difference is only a suspicion until the feed has been read to its end
 * some time later without naming the record. A record that was named shortly before is not counted either: it may have
 * been read again before its computed cells were updated.
 */

/** A record may be named this long before a sweep finds it, or after, ms. */
const NAMED_BEFORE_MS = 60_000;
const NAMED_AFTER_MS = 10_000;

export class MissedChanges {
  /** When each record was named (performance.now()), in the current minute and in the previous one, by table. */
  #named = new Map<string, Map<string, number>>();
  #namedBefore = new Map<string, Map<string, number>>();
  #rotatedAt = Number.NEGATIVE_INFINITY;
  /** When each record was found changed, by table. */
  #suspects = new Map<string, Map<string, number>>();

  /** True while no difference waits to be judged. */
  get isSettled(): boolean {
    return this.#suspects.size === 0;
  }

  /** Records that the feed named these records, or that they depend on records that it named. */
  named(tableId: string, recordIds: Iterable<string>, nowMs: number): void {
    this.forgetOld(nowMs);
    const named = within(this.#named, tableId);
    const suspects = this.#suspects.get(tableId);
    for (const id of recordIds) {
      named.set(id, nowMs);
      suspects?.delete(id);
    }
  }

  /** Forgets the records that were named too long ago to matter. Call it while the feed reports nothing, too. */
  forgetOld(nowMs: number): void {
    if (nowMs - this.#rotatedAt <= NAMED_BEFORE_MS) return;
    this.#namedBefore = this.#named;
    this.#named = new Map();
    this.#rotatedAt = nowMs;
  }

  /** Returns how many records are remembered to have been named. */
  get size(): number {
    return [this.#named, this.#namedBefore]
      .flatMap((tables) => [...tables.values()])
      .reduce((sum, records) => sum + records.size, 0);
  }

  /** Returns whether the record is remembered to have been named since then. */
  wasNamedSince(tableId: string, recordId: string, sinceMs: number): boolean {
    return (this.#namedAt(tableId, recordId) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
  }

  /** Records that a sweep found a difference between these records and the replica. */
  found(tableId: string, recordIds: Iterable<string>, nowMs: number): void {
    const suspects = within(this.#suspects, tableId);
    for (const id of recordIds) {
      const namedAt = this.#namedAt(tableId, id);
      if (namedAt === undefined || nowMs - namedAt > NAMED_BEFORE_MS) suspects.set(id, nowMs);
    }
  }

  /**
   * Call after the feed, requested at `askedMs`, was read to its end. @returns how many missed changes are now certain
   */
  readToEnd(askedMs: number): number {
    this.forgetOld(askedMs);
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
