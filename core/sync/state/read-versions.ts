/** Tickets for many requests at once. */

/** A ticket may be this old when it is used: it then loses to what was applied in the meantime, which is safe. */
const MAX_AGE_MS = 1000;

/**
 * Hands out the replica's tickets, one per second and base at most: a sweep that asks five times a second does not
 * pay for five.
 */
export class TicketSource {
  #take: () => Promise<number>;
  #ticket: Promise<number> | undefined;
  #takenAt = Number.NEGATIVE_INFINITY;

  constructor(take: () => Promise<number>) {
    this.#take = take;
  }

  /** The next ticket is one that is taken from now on: what was applied before must not win over it. */
  renew(): void {
    this.#takenAt = Number.NEGATIVE_INFINITY;
  }

  /** A ticket that was taken before this call, and not long before. */
  current(): Promise<number> {
    if (!this.#ticket || performance.now() - this.#takenAt > MAX_AGE_MS) {
      this.#takenAt = performance.now();
      const ticket = this.#take();
      this.#ticket = ticket;
      ticket.catch(() => {
        if (this.#ticket === ticket) this.#ticket = undefined;
      });
    }
    return this.#ticket;
  }
}
