/** From when on a base's requests with keys that the source has not accepted go first: rarely, and hardly while clients ask. */
import { BUSY_MS } from "./permit-set";

/** One request in this time, and while no client asks ... */
const UNPROVEN_MS = 10_000;
/** ... as many in this time as a window has. */
const UNPROVEN_WINDOW_MS = 25_000;

export class UnprovenPace {
  /** When they were sent, and when a client asked last, ms on the clock. */
  #sentAt: number[] = [];
  #clientAt = -Infinity;

  clientAsked(now: number): void {
    this.#clientAt = now;
  }

  sent(now: number, perWindow: number): void {
    this.#sentAt = [...this.#sentAt.slice(1 - perWindow), now];
  }

  /** Returns when the next one goes first, ms on the clock. @param perWindow requests in a window at present */
  from(perWindow: number): number {
    const [last, nth] = [this.#sentAt.at(-1), this.#sentAt.at(-perWindow)];
    const fewFrom = Math.max((nth ?? -Infinity) + UNPROVEN_WINDOW_MS, this.#clientAt + BUSY_MS);
    return Math.min((last ?? -Infinity) + UNPROVEN_MS, fewFrom);
  }
}
