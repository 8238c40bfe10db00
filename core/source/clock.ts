/**
 * Estimates the source's clock from the `Date` headers of its answers.
 *
 * An answer was dated before it arrived, and its seconds are whole: a date can only be too early. So the latest
 * estimate of all recent answers is the best, and never ahead of the source.
 */

/** How long dates are remembered, ms, up to twice that: after that a clock that was set back is followed. */
const MEMORY_MS = 5 * 60_000;

export class SourceClock {
  #before = Number.NEGATIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  #since = Number.NEGATIVE_INFINITY;

  /**
   * Records the date of an answer that has just arrived.
   *
   * @param at when it arrived, on performance.now()'s scale
   */
  record(sourceMs: number, at = performance.now()): void {
    if (!Number.isFinite(sourceMs)) return;
    if (at - this.#since > MEMORY_MS) {
      this.#before = at - this.#since > 2 * MEMORY_MS ? Number.NEGATIVE_INFINITY : this.#latest;
      this.#latest = Number.NEGATIVE_INFINITY;
      this.#since = at;
    }
    this.#latest = Math.max(this.#latest, sourceMs - at);
  }

  /** ms since 1970: never ahead of the source, behind it by about a second at most; undefined before any answer. */
  now(at = performance.now()): number | undefined {
    const offset = Math.max(this.#before, this.#latest);
    return Number.isFinite(offset) ? at + offset : undefined;
  }
}
