/**
 * Whether to believe that many records of a table are gone at once.
 *
 * I2, the other way round: sources do answer "no records", with status 200, for a table that has thousands, and for
 * as long as a minute. So a read that misses much is only believed when a later full read says the same, and one
 * that found nothing at all only when that has gone on for longer than any such spell that was seen.
 */

/** A sweep may delete this many rows, or this share of a table, without being asked twice. */
const FEW_ROWS = 10;
const SMALL_SHARE = 0.1;

/** An empty answer must have lasted this long. The spells that were seen ended within a minute. */
export const EMPTY_SPELL_MS = 90_000;

export class MassDeletion {
  #firstMissedAt: number | undefined;
  #emptySpellMs: number;

  constructor(emptySpellMs = EMPTY_SPELL_MS) {
    this.#emptySpellMs = emptySpellMs;
  }

  /**
   * A full read missed `missing` of the `total` rows that the replica has. May they be deleted? If not, read the
   * whole table again.
   *
   * @param nowMs of any clock that only goes forward
   */
  confirms(missing: number, total: number, nowMs: number): boolean {
    if (missing <= FEW_ROWS || missing <= total * SMALL_SHARE) {
      this.#firstMissedAt = undefined;
      return true;
    }
    if (this.#firstMissedAt === undefined) {
      this.#firstMissedAt = nowMs;
      return false;
    }
    if (missing === total && nowMs - this.#firstMissedAt < this.#emptySpellMs) return false;
    this.#firstMissedAt = undefined;
    return true;
  }
}
