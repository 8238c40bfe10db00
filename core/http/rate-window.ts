/** Counts per key within time windows, in this process's memory: enough to keep one client from using all capacity. */

/** Keys with a counter of their own; further keys of the same window share one. */
const MAX_KEYS = 50_000;
const OTHERS = "others";

export class RateWindow {
  readonly #most: number;
  readonly #windowMs: number;
  #counts = new Map<string, number>();
  #endsAt = 0;

  /** @param most maximum within each `windowMs` for each key */
  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Counts one more. @returns 0, or, if the maximum is exceeded, the ms until the window ends */
  take(key: string, now: number = performance.now()): number {
    if (now >= this.#endsAt) {
      this.#counts = new Map();
      this.#endsAt = now + this.#windowMs;
    }
    const counted = this.#counts.has(key) || this.#counts.size < MAX_KEYS ? key : OTHERS;
    const count = (this.#counts.get(counted) ?? 0) + 1;
    this.#counts.set(counted, count);
    return count <= this.#most ? 0 : Math.ceil(this.#endsAt - now);
  }
}
