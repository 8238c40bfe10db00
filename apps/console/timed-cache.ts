/** Results that pages share for a short time. */

/** Changes show this much later, ms. */
const KEPT_MS = 30_000;

/**
 * Keeps results for a short time, each computed once however many requests wait for it. Failures are not kept, and neither
 * is null.
 */
export class TimedCache<T> {
  readonly #keptMs: number;
  readonly #most: number;
  /** The oldest first. */
  readonly #entries = new Map<string, { until: number; result: Promise<T> }>();

  constructor({ keptMs = KEPT_MS, most }: { keptMs?: number; most: number }) {
    this.#keptMs = keptMs;
    this.#most = most;
  }

  get(key: string, compute: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const known = this.#entries.get(key);
    if (known && known.until > now) return known.result;
    const entry = { until: now + this.#keptMs, result: compute() };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    entry.result.then((result) => result ?? forget(), forget);
    if (this.#entries.size > this.#most) this.#entries.delete(this.#entries.keys().next().value!);
    return entry.result;
  }

  clear(): void {
    this.#entries.clear();
  }
}
