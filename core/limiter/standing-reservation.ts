/**
 * The standing reservation of a wait queue of clients: made for the next request before it comes, so that this one waits
 * for no answer of the control plane.
 *
 * A client that asks often is likely to ask again. Its next reservation is made while Airtable answers, may be used
 * at any time within STANDING_MS, and is returned if it was not.
 *
 * A pause after a 429 that another process got is not noticed: for up to STANDING_MS, one request may be sent.
 */
import { type LimiterBackend, type Margin, type Reservation, SPARE_MS, STANDING_MS } from "./backend";
import type { QuotaClock } from "./clock";
import { type Connections, isCovered } from "./waiter";

export class StandingReservation {
  readonly #backend: NonNullable<LimiterBackend["standing"]>;
  readonly #clock: QuotaClock;
  readonly #events: { onUnused(arrivesBy: number[]): void; onSettled(): void };
  #made: Reservation | undefined;
  /** The margin that it was made with. */
  #margin: Margin = { delayMs: 0, spreadMs: 0, dropMs: 0 };
  /** Those that were taken. */
  readonly #taken = new WeakSet<Reservation>();
  /** Those whose use the backend does not know of yet. */
  #used: number[] = [];
  #isWanted = false;
  #isRenewing = false;
  /** Cancels the call that is due. */
  #cancelDue: (() => void) | undefined;
  /** Whether the call that is running makes one. */
  #isBeingMade = false;
  #isSteady = false;
  #cameAt = -Infinity;
  /** How often what was made has been voided. */
  #voids = 0;
  #isClosed = false;

  /**
   * @param events.onUnused called with what identifies those that will not be used
   * @param events.onSettled called when no call to the backend is running anymore
   */
  constructor(
    backend: NonNullable<LimiterBackend["standing"]>,
    clock: QuotaClock,
    events: { onUnused(arrivesBy: number[]): void; onSettled(): void },
  ) {
    this.#backend = backend;
    this.#clock = clock;
    this.#events = events;
  }

  /** Whether there is none, and none is being made. */
  get isIdle(): boolean {
    return this.#made === undefined && this.isSettled;
  }

  /** Whether no call to the backend is running or due. */
  get isSettled(): boolean {
    return !this.#isRenewing && !this.#cancelDue;
  }

  /** Whether one is being made. */
  get isBeingMade(): boolean {
    return this.#isBeingMade;
  }

  /** Records that a request has come. */
  arrived(now: number): void {
    this.#isSteady = now - this.#cameAt < STANDING_MS;
    this.#cameAt = now;
  }

  /** Returns whether there is one that a request could be sent with. */
  isReady(now: number): boolean {
    return this.#made !== undefined && now <= this.#made.at + STANDING_MS;
  }

  /** Takes it, as a reservation for a request that is sent now or at its beginning. */
  take(now: number, connections: Connections | undefined): Reservation | undefined {
    if (!this.isReady(now)) return undefined;
    const made = this.#made!;
    this.#made = undefined;
    if (!isCovered(this.#margin, connections)) {
      this.#events.onUnused([made.arrivesBy]);
      return undefined;
    }
    const at = Math.max(made.at, now);
    const until = at + this.#margin.delayMs + SPARE_MS;
    const taken = { ...made, at, until, marginMs: made.marginMs - STANDING_MS };
    this.#taken.add(taken);
    return taken;
  }

  /**
   * Records that a client's request was sent, and makes the next one if it is likely to be used.
   *
   * @param isLast no other request is waiting
   * @param margin of the request
   */
  sent(reservation: Reservation, isLast: boolean, margin: Margin): void {
    if (this.#taken.has(reservation)) this.#used.push(reservation.arrivesBy);
    // Over a new path, earlier requests may have taken longer than measured.
    this.#isWanted = isLast && this.#isSteady && !this.#made && !this.#isClosed && margin.dropMs === 0;
    if ((this.#isWanted || this.#used.length > 0) && this.isSettled)
      this.#cancelDue = this.#backend.soon(() => void this.#renew(margin));
  }

  /** Forgets it, because requests pause; returns what identifies it. */
  void(): number[] {
    this.#voids++;
    this.#isWanted = false;
    return this.#clear();
  }

  /** Forgets it, and makes no more; returns what identifies it. */
  close(): number[] {
    this.#isClosed = true;
    this.#isWanted = false;
    if (this.#cancelDue) void this.#renew(this.#margin);
    return this.#clear();
  }

  async #renew(margin: Margin): Promise<void> {
    this.#cancelDue?.();
    this.#cancelDue = undefined;
    this.#isRenewing = true;
    try {
      do {
        const [used, isWanted, voids] = [this.#used, this.#isWanted, this.#voids];
        this.#used = [];
        this.#isWanted = false;
        this.#isBeingMade = isWanted;
        const made = await this.#backend.renew(used, isWanted, margin);
        if (!made) continue;
        if (this.#isClosed || voids !== this.#voids) this.#events.onUnused([made.arrivesBy]);
        else this.#keep(made, margin);
      } while (this.#used.length > 0 || this.#isWanted);
    } catch {
      // What was used counts until it would have ended. The next request's reservation reports the error.
      this.#used = [];
    }
    this.#isRenewing = false;
    this.#isBeingMade = false;
    this.#events.onSettled();
  }

  #keep(made: Reservation, margin: Margin): void {
    this.#made = made;
    this.#margin = margin;
    this.#clock.at(made.at + STANDING_MS + 1, () => {
      if (this.#made !== made) return;
      this.#made = undefined;
      // If the process stood still for longer, it no longer counts, and would be taken for one that was counted in the month.
      if (this.#clock.now() < made.until + STANDING_MS) this.#events.onUnused([made.arrivesBy]);
    });
  }

  #clear(): number[] {
    const made = this.#made;
    this.#made = undefined;
    return made ? [made.arrivesBy] : [];
  }
}
