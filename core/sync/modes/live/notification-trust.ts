/**
 * Decides whether notifications can be relied on. One that arrives for any base proves that the address can be reached;
 * a change of this base that was found without one, and is not followed by one soon, proves that this base's do not arrive.
 */
import type { Notifier } from "../../../async";
import type { NotificationState } from "../../host";
import type { FeedState } from "./feed-state";

/** A notification may arrive this long after its change was found. */
const GRACE_MS = 30_000;

/** Times are performance.now(). */
export class NotificationTrust {
  #notifier: Notifier;
  #addressState: () => NotificationState;
  #hasMissed: boolean;
  #since = performance.now();
  #feedState: Pick<FeedState, "foundAt">;

  /**
   * @param addressState returns what is known of the address of all bases
   * @param hasMissed whether this base's notifications did not arrive before
   * @param feedState what was found by an earlier lease
   */
  constructor(
    notifier: Notifier,
    addressState: () => NotificationState,
    hasMissed: boolean,
    feedState: Pick<FeedState, "foundAt">,
  ) {
    this.#notifier = notifier;
    this.#addressState = addressState;
    this.#hasMissed = hasMissed;
    this.#feedState = feedState;
  }

  get state(): NotificationState {
    return this.#hasMissed && this.#notifier.notifiedAt < this.#since ? "none" : this.#addressState();
  }

  /**
   * Records that changes were found. The previous read began at `readAt` and covered all notifications before that.
   */
  found(readAt: number): void {
    if (this.#notifier.notifiedAt < readAt) this.#feedState.foundAt ??= performance.now();
  }

  /** Returns the time until trust must be judged, ms. */
  get graceMs(): number {
    return this.#feedState.foundAt === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(0, this.#feedState.foundAt + GRACE_MS - performance.now());
  }

  /** @returns true when trust has just been lost */
  judge(): boolean {
    if (this.#feedState.foundAt === undefined) return false;
    const isNotified = this.#notifier.notifiedAt >= this.#feedState.foundAt;
    if (!isNotified && this.graceMs > 0) return false;
    this.#feedState.foundAt = undefined;
    if (isNotified || this.state === "none") return false;
    this.#hasMissed = true;
    this.#since = performance.now();
    return true;
  }
}
