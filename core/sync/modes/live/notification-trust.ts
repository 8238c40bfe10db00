/**
 * Whether notifications are to be waited for. One that came proves that they come; a change that was found without one, and
 * for which none comes soon, that they do not.
 */
import type { Notifier } from "../../../async";

/** A notification may come so long after its change was found. */
const GRACE_MS = 30_000;

/** Times are performance.now(). */
export class NotificationTrust {
  #notifier: Notifier;
  #isTrusted: boolean;
  #since = performance.now();
  #foundAt: number | undefined;

  /** @param isTrusted as it was known before */
  constructor(notifier: Notifier, isTrusted: boolean) {
    this.#notifier = notifier;
    this.#isTrusted = isTrusted;
  }

  get isTrusted(): boolean {
    return this.#isTrusted || this.#notifier.notifiedAt >= this.#since;
  }

  /** Changes were found; the read before began at `readAt`, and what was notified before then it had found. */
  found(readAt: number): void {
    if (this.#notifier.notifiedAt < readAt) this.#foundAt ??= performance.now();
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
    const isNotified = this.#notifier.notifiedAt >= this.#foundAt;
    if (!isNotified && this.graceMs > 0) return false;
    this.#foundAt = undefined;
    if (isNotified || !this.isTrusted) return false;
    this.#isTrusted = false;
    this.#since = performance.now();
    return true;
  }
}
