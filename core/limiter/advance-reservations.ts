/**
 * The reservations that a wait queue of sync has made in advance.
 *
 * While a sync uses its whole share, one call to the backend reserves for the requests of the coming second. Clients need
 * not wait for these reservations, because they can be revoked until shortly before they begin (revocations.ts).
 */
import { type LimiterBackend, type Margin, type Reservation, SHARED_MS } from "./backend";
import type { QuotaClock } from "./clock";
import { type Connections, isCovered } from "./waiter";

/** Reservations in advance, besides that of the request: with three a second, those of one second. */
const AHEAD = 2;
/**
 * Reservations are made in advance once this many requests in a row came sooner after the one before than the even
 * spacing; one that passes unused costs as many. A sync that waits for the source would use few of them.
 */
const STEADY_REQUESTS = 4;

export interface AdvanceReservation extends Reservation {
  /** How often reservations of this queue had been voided when it was asked for. */
  readonly generation: number;
}

export class AdvanceReservations {
  readonly #backend: NonNullable<LimiterBackend["advance"]>;
  readonly #clock: QuotaClock;
  readonly #onUnused: (arrivesBy: number[]) => void;
  /** In order of time. */
  readonly #made: AdvanceReservation[] = [];
  #generation = 0;
  /** The margin that they were made with. */
  #margin: Margin = { delayMs: 0, spreadMs: 0, dropMs: 0 };
  /** How many requests in a row came soon after the one before; at most STEADY_REQUESTS. */
  #steady = 0;
  #grantedAt = -Infinity;
  #isExpiryDue = false;
  #isClosed = false;

  /** @param onUnused called with what identifies those that will not be used */
  constructor(
    backend: NonNullable<LimiterBackend["advance"]>,
    clock: QuotaClock,
    onUnused: (arrivesBy: number[]) => void,
  ) {
    this.#backend = backend;
    this.#clock = clock;
    this.#onUnused = onUnused;
  }

  /** How many should be made with the next call. */
  get wanted(): number {
    return !this.#isClosed && this.#steady >= STEADY_REQUESTS && this.#backend.isWorthwhile ? AHEAD : 0;
  }

  /** How often reservations have been voided. */
  get generation(): number {
    return this.#generation;
  }

  get isEmpty(): boolean {
    return this.#made.length === 0;
  }

  /** Records that a request has come. */
  arrived(now: number): void {
    const isPrompt = now - this.#grantedAt < this.#backend.spacingMs - SHARED_MS;
    this.#steady = isPrompt ? Math.min(STEADY_REQUESTS, this.#steady + 1) : Math.min(0, this.#steady);
  }

  /** Records that a request may be sent now. */
  granted(at: number): void {
    this.#grantedAt = at;
  }

  /** @param generation when they were asked for */
  add(reservations: (Reservation | null)[], margin: Margin, generation: number): void {
    for (const reservation of reservations) if (reservation) this.#made.push({ ...reservation, generation });
    if (this.isEmpty) return;
    if (this.#isClosed || generation !== this.#generation) this.#onUnused(this.clear());
    else this.#expireLater();
    this.#margin = margin;
  }

  /** Takes the next one that is not over. */
  take(now: number): AdvanceReservation | undefined {
    if (this.isEmpty) return undefined;
    this.#dropIfPast(now);
    return this.#made.shift();
  }

  /** Forgets all, and takes no more; returns what identifies them. */
  close(): number[] {
    this.#isClosed = true;
    return this.clear();
  }

  /**
   * Forgets all, and voids those that were taken; returns what identifies the former. To be called when a request was sent
   * late: they were made for a window in which it would have been in time.
   */
  void(): number[] {
    this.#generation++;
    return this.clear();
  }

  /** Forgets all; returns what identifies them. */
  clear(): number[] {
    return this.#made.splice(0).map(({ arrivesBy }) => arrivesBy);
  }

  /** Returns whether the reservation still holds, for a request over such connections. */
  isUsable(reservation: AdvanceReservation, connections: Connections | undefined): boolean {
    if (reservation.generation !== this.#generation) return false;
    return this.#backend.isValid(reservation) && isCovered(this.#margin, connections);
  }

  /** Once one has passed unused, the next request may go sooner than the others begin. */
  #dropIfPast(now: number): void {
    if (this.isEmpty || this.#made[0]!.until >= now) return;
    this.#steady -= STEADY_REQUESTS;
    this.#onUnused(this.clear());
  }

  /** Drops those that no request has used by then. */
  #expireLater(): void {
    if (this.#isExpiryDue) return;
    this.#isExpiryDue = true;
    this.#clock.at(this.#made.at(-1)!.until + 1, () => {
      this.#isExpiryDue = false;
      this.#dropIfPast(this.#clock.now());
      if (!this.isEmpty) this.#expireLater();
    });
  }
}
