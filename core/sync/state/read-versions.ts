/**
 * Read versions that many requests share. One may be old when it is used: it then loses to images that were applied in the
 * meantime, which is safe.
 */
import type { RecordPage } from "../../source";
import { SHORTEST_MS } from "../pacing";

/** A page, and a read version that was taken before it was requested. */
export interface VersionedPage {
  page: RecordPage;
  readVersion: number;
}

/**
 * How old one may be that a sweep uses, ms. Of the records that it finds changed, only those that another process wrote in this time lose:
 * they are compared again. Shorter, most statements of an unchanged sweep would be read versions.
 */
export const SWEEP_AGE_MS = 15_000;
/** The same for a base that nothing has written to lately: little loses then. */
export const QUIET_SWEEP_AGE_MS = 60_000;

/**
 * Returns the replica's read versions, and takes at most one per `maxAgeMs` and base: a sweep with five requests a
 * second does not need five.
 */
export class ReadVersionSource {
  #take: () => Promise<number>;
  #readVersion: Promise<number> | undefined;
  /** The same, once it is there. */
  #known: number | undefined;
  #takenAt = Number.NEGATIVE_INFINITY;
  readonly #maxAgeMs: number;

  constructor(take: () => Promise<number>, maxAgeMs = SHORTEST_MS) {
    this.#take = take;
    this.#maxAgeMs = maxAgeMs;
  }

  /** Adds a read version that was taken with another statement, which was sent at `sentAt` (performance.now()). */
  offer(readVersion: number, sentAt: number): void {
    if (sentAt <= this.#takenAt) return;
    this.#takenAt = sentAt;
    this.#readVersion = Promise.resolve(readVersion);
    this.#known = readVersion;
  }

  /** Makes the next read version a new one, which is newer than everything applied before this call. */
  renew(): void {
    this.#takenAt = Number.NEGATIVE_INFINITY;
  }

  /** The same, unless the last one is newer than the image with this applied version. */
  renewIfBefore(appliedVersion: number): void {
    if (this.#known === undefined || this.#known < appliedVersion) this.renew();
  }

  /** Returns a read version that was taken before this call, and not long before. */
  current(): Promise<number> {
    if (!this.#readVersion || performance.now() - this.#takenAt > this.#maxAgeMs) {
      this.#takenAt = performance.now();
      const readVersion = this.#take();
      this.#readVersion = readVersion;
      this.#known = undefined;
      readVersion.then(
        (known) => {
          if (this.#readVersion === readVersion) this.#known = known;
        },
        () => {
          if (this.#readVersion === readVersion) this.#readVersion = undefined;
        },
      );
    }
    return this.#readVersion;
  }
}
