/** Read versions for many requests at once. */

/** A read version may be this old when it is used: it then loses to what was applied in the meantime, which is safe. */
const MAX_AGE_MS = 1000;

/**
 * Hands out the replica's read versions, one per second and base at most: a sweep that asks five times a second does not
 * pay for five.
 */
export class ReadVersionSource {
  #take: () => Promise<number>;
  #readVersion: Promise<number> | undefined;
  #takenAt = Number.NEGATIVE_INFINITY;

  constructor(take: () => Promise<number>) {
    this.#take = take;
  }

  /** The next read version is one that is taken from now on: what was applied before must not win over it. */
  renew(): void {
    this.#takenAt = Number.NEGATIVE_INFINITY;
  }

  /** A read version that was taken before this call, and not long before. */
  current(): Promise<number> {
    if (!this.#readVersion || performance.now() - this.#takenAt > MAX_AGE_MS) {
      this.#takenAt = performance.now();
      const readVersion = this.#take();
      this.#readVersion = readVersion;
      readVersion.catch(() => {
        if (this.#readVersion === readVersion) this.#readVersion = undefined;
      });
    }
    return this.#readVersion;
  }
}
