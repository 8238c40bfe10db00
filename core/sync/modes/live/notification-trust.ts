/**
 * Whether pings are to be waited for. One that came proves that they come; a change that was found without one, and
 * for which none comes soon, that they do not.
 */
import type { Bell } from "../../../async";

/** A ping may come so long after its change was found. */
const GRACE_MS = 30_000;

/** Times are performance.now(). */
export class PingTrust {
  #bell: Bell;
  #isTrusted: boolean;
  #since = performance.now();
  #foundAt: number | undefined;

  /** @param isTrusted as it was known before */
  constructor(bell: Bell, isTrusted: boolean) {
    this.#bell = bell;
    this.#isTrusted = isTrusted;
  }

  get isTrusted(): boolean {
    return this.#isTrusted || this.#bell.pingedAt >= this.#since;
  }

  /** Changes were found; the read before began at `readAt`, and what was pinged before then it had found. */
  found(readAt: number): void {
    if (this.#bell.pingedAt < readAt) this.#foundAt ??= performance.now();
  }

  /** How long until it is to be judged, ms. */
  get graceMs(): number {
    return this.#foundAt === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, this.#foundAt + GRACE_MS - performance.now());
  }

  /** @returns true when trust has just been lost */
  judge(): boolean {
    if (this.#foundAt === undefined) return false;
    const isPinged = this.#bell.pingedAt >= this.#foundAt;
    if (!isPinged && this.graceMs > 0) return false;
    this.#foundAt = undefined;
    if (isPinged || !this.isTrusted) return false;
    this.#isTrusted = false;
    this.#since = performance.now();
    return true;
  }
}
