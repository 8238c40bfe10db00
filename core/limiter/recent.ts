/** What is known of each key, for as long as the key is used. */

/** An idle entry that was not used for this long is dropped, and after twice this time at the latest, ms. */
const KEPT_MS = 60_000;

interface Entry {
  readonly isIdle: boolean;
}

export class Recent<T extends Entry> {
  readonly #now: () => number;
  readonly #entries = new Map<string, { entry: T; isUsed: boolean }>();
  #lookedAt: number;

  /** @param now ms on any monotonic clock */
  constructor(now: () => number) {
    this.#now = now;
    this.#lookedAt = now();
  }

  /** Returns the entry of that name, created if there is none. */
  get(name: string, create: () => T): T {
    if (this.#now() - this.#lookedAt > KEPT_MS) this.#dropUnused();
    const known = this.#entries.get(name);
    if (known) {
      known.isUsed = true;
      return known.entry;
    }
    const entry = create();
    this.#entries.set(name, { entry, isUsed: true });
    return entry;
  }

  /** Returns all entries that are known. */
  all(): T[] {
    return [...this.#entries.values()].map(({ entry }) => entry);
  }

  #dropUnused(): void {
    this.#lookedAt = this.#now();
    for (const [name, known] of this.#entries) {
      if (!known.isUsed && known.entry.isIdle) this.#entries.delete(name);
      known.isUsed = false;
    }
  }
}
