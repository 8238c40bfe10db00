/** Read versions that many requests share. */

/**
 * A read version may be this old when it is used: it then loses to images that were applied in the meantime, which is
 * safe.
 */
const MAX_AGE_MS = 1000;

/**
 * Returns the replica's read versions, and takes at most one per second and base: a sweep with five requests a second
 * does not need five.
 */
export class ReadVersionSource {
  #take: () => Promise<number>;
  #readVersion: Promise<number> | undefined;
  #takenAt = Number.NEGATIVE_INFINITY;

  constructor(take: () => Promise<number>) {
    this.#take = take;
  }

  /** Makes the next read version a new one, which is newer than everything applied before this call. */
  renew(): void {
    this.#takenAt = Number.NEGATIVE_INFINITY;
  }

  /** Returns a read version that was taken before this call, and not long before. */
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
