/** A reservation against a key's rate limit, and the interface that both limiter backends implement. */

/** What has a quota of its own: a source base, whoever's API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;

/**
 * `live`: a sync's call for a change that someone waits to see; at least one reservation in five is theirs. `named`: the
 * one among them that brings what a read of the feed has just named, and need not wait for the second after that.
 * `unproven`: a client's call with a key that the source has not accepted for the base; behind clients and sync.
 */
export type LivePriority = "live" | "named";
export type Priority = "sync" | LivePriority | "client" | "unproven";

export type BlockReason = "rate_limited" | "billing_limit";

/** The right to send one request: it may go out from `at` on, and must until `until`, both on this process's clock (ms). */
export interface Reservation {
  at: number;
  until: number;
  /** When its request has reached the source at the latest, as the backend says it; what a reservation is given back by. */
  arrivesBy: number;
  /** From when it may go out to `arrivesBy`, ms. */
  marginMs: number;
}

export interface Grant {
  /** One per call wanted, in order; null when there is no reservation within its reach. */
  reservations: (Reservation | null)[];
  /** Earliest time (this process's clock, ms) that one call more could get as things stand. */
  nextAt: number;
}

/** By how much longer one call may take to the source than another: what of it is this process's, and the network's. */
export interface Margin {
  /** From the time that a call may go out to when it does, ms. */
  delayMs: number;
  /** From there to the source, ms more than at best. */
  spreadMs: number;
}

export interface LimiterBackend {
  /**
   * Reserves calls.
   *
   * @param withinMs one per call wanted: how far ahead its reservation may begin
   * @param back reservations that were made here and are not used
   */
  acquire(withinMs: number[], back: number[], margin: Margin): Promise<Grant>;
  /** Was the reservation made void by a block that began after it was reserved? */
  isVoid(reservation: Reservation): Promise<boolean>;
  /** The reservation's call goes out only now, or may have a moment ago: the window after it counts from now. Never fails. */
  reportLateSend(reservation: Reservation): Promise<void>;
}

/** What every call has for being late and on its way, ms; `quota_acquire` has the same. */
export const LEAST_MARGIN_MS = 20;
/** What of it is this process's: timers are exact to a millisecond or two. */
export const SPARE_MS = 5;
/** The longest that a process says its calls are late, and the network's part: the largest margin is the sum of all, ms. */
export const MOST_DELAY_MS = 100;
const MOST_SPREAD_MS = 180;
/** With what the source's refusals add; `quota_acquire` has the same. */
export const MOST_MARGIN_MS = 400;

/** A margin as it is reserved. */
export function wholeMs({ delayMs, spreadMs }: Margin): number {
  return LEAST_MARGIN_MS + Math.min(MOST_DELAY_MS, delayMs) + Math.min(MOST_SPREAD_MS, spreadMs);
}

/**
 * A reservation as the backend tells of it.
 *
 * @param arrivesBy null: there is none
 * @param marginMs from its beginning to `arrivesBy`
 * @param delayMs how long of that it may wait in this process
 * @param addMs what makes the backend's times this process's
 */
export function reservationOf(
  arrivesBy: number | null,
  marginMs: number,
  delayMs: number,
  addMs: number,
): Reservation | null {
  if (arrivesBy === null) return null;
  const at = arrivesBy - marginMs + addMs;
  return { at, until: at + delayMs + SPARE_MS, arrivesBy, marginMs };
}
