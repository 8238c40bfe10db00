/** Keeps results for a short time, each computed once however many requests wait for it. Failures are not kept. */
export class TimedCache<T> {
  readonly #keptMs: number;
  readonly #most: number;
  /** The oldest first. */
  readonly #entries = new Map<string, { until: number; result: Promise<T> }>();

  constructor(options: { keptMs: number; most: number }) {
    this.#keptMs = options.keptMs;
    this.#most = options.most;
  }

  get(key: string, compute: () => Promise<T>): Promise<T> {
    const now = performance.now();
    const known = this.#entries.get(key);
    if (known && known.until > now) return known.result;
    const entry = { until: now + this.#keptMs, result: compute() };
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.result.catch(() => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    });
    if (this.#entries.size > this.#most) this.#entries.delete(this.#entries.keys().next().value!);
    return entry.result;
  }
}
