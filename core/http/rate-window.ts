/** Counts of a process by key within windows of time: as much as it takes to keep one client from taking all. */

/** Keys that are counted one by one; further ones of the same window share a count. */
const MAX_KEYS = 50_000;
const OTHERS = "others";

export class RateWindow {
  readonly #most: number;
  readonly #windowMs: number;
  #counts = new Map<string, number>();
  #endsAt = 0;

  /** @param most within each `windowMs` and for each key */
  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Counts one more. @returns 0, or, when it is one too many, the ms until the window is over */
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
