/**
 * The place of a request among those that hold a connection to the source for long, because the source takes its time or
 * the client does.
 */
import type { BudgetShare } from "../../core/http";

/**
 * A read that has no answer after this time takes a place, ms. Nearly all end before and need none: faster requests would use
 * up the connections of a proxy only if there were more of them than it can forward.
 */
const SLOW_MS = 500;

/** Opens a share of the requests that hold a connection. @param giveWay breaks it off; absent: it never gives way */
export type OpenShare = (giveWay?: () => void) => BudgetShare;

/** There is no place for the request, or it has given way to another one. */
export class NoPlace extends Error {}

export class AnswerPlace {
  readonly #open: OpenShare;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #share: BudgetShare | undefined;
  /** Whether it was refused a place, or lost it. */
  isLost = false;
  /** Ends the request. */
  breakOff = () => {};

  constructor(open: OpenShare) {
    this.#open = open;
  }

  /** Takes a place before anything is sent that must not be broken off. @returns false if there is none */
  keep(): boolean {
    return this.#take(this.#open());
  }

  /** @returns false if there is none */
  take(): boolean {
    if (this.#share) return !this.isLost;
    const giveWay = () => {
      this.isLost = true;
      this.breakOff();
    };
    return this.#take(this.#open(giveWay));
  }

  /** The request was sent. @param breakOff ends it before its answer has begun */
  sent(breakOff: () => void): void {
    this.breakOff = breakOff;
    if (this.#share) return;
    this.#timer = setTimeout(() => {
      if (!this.take()) this.breakOff();
    }, SLOW_MS).unref();
  }

  /** The request has ended. */
  leave(): void {
    clearTimeout(this.#timer);
    this.#share?.[Symbol.dispose]();
    this.#share = undefined;
  }

  #take(share: BudgetShare): boolean {
    clearTimeout(this.#timer);
    this.#share = share;
    this.isLost = !share.take(1);
    return !this.isLost;
  }
}
