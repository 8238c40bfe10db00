/**
 * Decides whether notifications can be relied on. One that arrives proves that they do; a change that was found
 * without one, and is not followed by one soon, proves the opposite.
 */
import type { Notifier } from "../../../async";

/** A notification may arrive this long after its change was found. */
const GRACE_MS = 30_000;

/** Times are performance.now(). */
export class NotificationTrust {
  #notifier: Notifier;
  #isTrusted: boolean;
  #since = performance.now();
  #foundAt: number | undefined;

  /** @param isTrusted whether notifications were trusted before */
  constructor(notifier: Notifier, isTrusted: boolean) {
    this.#notifier = notifier;
    this.#isTrusted = isTrusted;
  }

  get isTrusted(): boolean {
    return this.#isTrusted || this.#notifier.notifiedAt >= this.#since;
  }

  /**
   * Records that changes were found. The previous read began at `readAt` and covered all notifications before that.
   */
  found(readAt: number): void {
    if (this.#notifier.notifiedAt < readAt) this.#foundAt ??= performance.now();
  }

  /** Returns the time until trust must be judged, ms. */
  get graceMs(): number {
    return this.#foundAt === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, this.#foundAt + GRACE_MS - performance.now());
  }

  /** @returns true when trust has just been lost */
  judge(): boolean {
    if (this.#foundAt === undefined) return false;
    const isNotified = this.#notifier.notifiedAt >= this.#foundAt;
    if (!isNotified && this.graceMs > 0) return false;
    this.#foundAt = undefined;
    if (isNotified || !this.isTrusted) return false;
    this.#isTrusted = false;
    this.#since = performance.now();
    return true;
  }
}
