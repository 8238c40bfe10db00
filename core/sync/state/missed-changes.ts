/**
 * Counts missed changes: records that a sweep or a comparison found changed and that the feed never reported.
 *
 * Both may be faster than the feed. So a difference is only a suspicion until the feed has been read to its end some time
 * later without naming the record. A record that was named shortly before is not counted either: it may have been read
 * again before its computed cells were updated.
 */

/** The longest delay of the feed in reporting a change, ms. */
export const FEED_LATE_MS = 20_000;
/** A record may be named this long before it is found changed, ms. */
const NAMED_BEFORE_MS = 60_000;

/** What has found a difference. A comparison looks at the cells that the feed reports only. */
export type FoundBy = "sweep" | "comparison";

export class MissedChanges {
  /** When each record was named (performance.now()), in the current minute and in the previous one, by table. */
  #named = new Map<string, Map<string, number>>();
  #namedBefore = new Map<string, Map<string, number>>();
  #rotatedAt = Number.NEGATIVE_INFINITY;
  /** How and when each record was found changed, by table. */
  #suspects = new Map<string, Map<string, { by: FoundBy; at: number }>>();

  /** True while no difference waits to be judged. */
  get isSettled(): boolean {
    return this.#suspects.size === 0;
  }

  /** Records that the feed named these records, or that they depend on records that it named. */
  named(tableId: string, recordIds: Iterable<string>, nowMs: number): void {
    this.forgetOld(nowMs);
    const named = this.#named.getOrInsertComputed(tableId, () => new Map());
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

  /** Records that these records differed from the replica. */
  found(tableId: string, recordIds: Iterable<string>, nowMs: number, by: FoundBy = "sweep"): void {
    const suspects = this.#suspects.getOrInsertComputed(tableId, () => new Map());
    for (const id of recordIds) {
      const namedAt = this.#named.get(tableId)?.get(id) ?? this.#namedBefore.get(tableId)?.get(id);
      if (namedAt === undefined || nowMs - namedAt > NAMED_BEFORE_MS) suspects.set(id, { by, at: nowMs });
    }
  }

  /** Returns the time until a read of the feed shows whether it has omitted what comparisons found, ms. */
  judgedInMs(nowMs: number): number {
    let dueInMs = Infinity;
    for (const suspects of this.#suspects.values()) {
      for (const { by, at } of suspects.values())
        if (by === "comparison") dueInMs = Math.min(dueInMs, at + FEED_LATE_MS - nowMs);
    }
    return Math.max(0, dueInMs);
  }

  /**
   * Call after the feed, requested at `askedMs`, was read to its end. @returns how many missed changes are now certain
   */
  readToEnd(askedMs: number): Record<FoundBy, number> {
    this.forgetOld(askedMs);
    const missed = { sweep: 0, comparison: 0 };
    for (const [tableId, suspects] of this.#suspects) {
      for (const [id, { by, at }] of suspects) {
        if (askedMs - at < FEED_LATE_MS) continue;
        suspects.delete(id);
        missed[by]++;
      }
      if (suspects.size === 0) this.#suspects.delete(tableId);
    }
    return missed;
  }
}
