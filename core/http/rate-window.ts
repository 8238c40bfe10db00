/** Counts per key within time windows, in this process's memory: enough to keep one client from using all capacity. */
import { LruMap } from "../lru-map";

/**
 * Keys with a counter. Beyond them, the least recently counted one starts again: no two keys share a counter, so a flood of
 * keys refuses no other key, and gains less than it costs.
 */
const MAX_KEYS = 50_000;

export class RateWindow {
  readonly #most: number;
  readonly #windowMs: number;
  #counts = new LruMap<string, number>(MAX_KEYS);
  #endsAt = 0;

  /** @param most maximum within each `windowMs` for each key */
  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /**
   * Counts one more.
   *
   * @param most of this key
   * @returns 0, or, if the maximum is exceeded, the ms until the window ends
   */
  take(key: string, now: number = performance.now(), most = this.#most): number {
    if (now >= this.#endsAt) {
      this.#counts = new LruMap(MAX_KEYS);
      this.#endsAt = now + this.#windowMs;
    }
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count <= most ? 0 : Math.ceil(this.#endsAt - now);
  }

  /** Returns what `take` would return, without counting. */
  waitMs(key: string, now: number = performance.now()): number {
    const isFull = now < this.#endsAt && (this.#counts.get(key) ?? 0) >= this.#most;
    return isFull ? Math.ceil(this.#endsAt - now) : 0;
  }
}
