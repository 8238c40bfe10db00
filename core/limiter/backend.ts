/** What a place in a key's quota is, and the two books that hand places out agree on. */

/** What has a quota of its own: a source base, whoever's API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;

/**
 * `live`: a sync's call for a change that someone waits to see; at least one reservation in five is theirs. `named`: the
 * one among them that brings what a read of the feed has just named, and need not wait for the second after that.
 * `unproven`: a client's call with a key that the source has not accepted for the base; behind clients and sync.
 */
export type LiveKind = "live" | "named";
export type CallKind = "sync" | LiveKind | "client" | "unproven";

export type BlockReason = "rate_limited" | "billing_limit";

/** The right to send one request: it may go out from `at` on, and must until `until`, both on this process's clock (ms). */
export interface Place {
  at: number;
  until: number;
  /** When its request has reached the source at the latest, as the book says it; what a place is given back by. */
  slot: number;
  /** From when it may go out to `slot`, ms. */
  marginMs: number;
}

export interface Booking {
  /** One per call wanted, in order; null when there is no place within its reach. */
  places: (Place | null)[];
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

export interface Book {
  /**
   * Books calls.
   *
   * @param withinMs one per call wanted: how far ahead its place may begin
   * @param back slots that were booked here and are not used
   */
  take(withinMs: number[], back: number[], margin: Margin): Promise<Booking>;
  /** Was the place made void by a block that began after it was booked? */
  isVoid(place: Place): Promise<boolean>;
  /** The place's call goes out only now, or may have a moment ago: the window after it counts from now. Never fails. */
  wentLate(place: Place): Promise<void>;
}

/** What every call has for being late and on its way, ms; `quota_take` has the same. */
export const LEAST_MARGIN_MS = 20;
/** What of it is this process's: timers are exact to a millisecond or two. */
export const SPARE_MS = 5;
/** The longest that a process says its calls are late, and the network's part: the largest margin is the sum of all, ms. */
export const MOST_DELAY_MS = 100;
const MOST_SPREAD_MS = 180;
/** With what the source's refusals add; `quota_take` has the same. */
export const MOST_MARGIN_MS = 400;

/** A margin as it is booked. */
export function wholeMs({ delayMs, spreadMs }: Margin): number {
  return LEAST_MARGIN_MS + Math.min(MOST_DELAY_MS, delayMs) + Math.min(MOST_SPREAD_MS, spreadMs);
}

/**
 * A place as the book tells of it.
 *
 * @param slot null: there is none
 * @param marginMs from its beginning to `slot`
 * @param delayMs how long of that it may wait in this process
 * @param addMs what makes the book's times this process's
 */
export function placeOf(slot: number | null, marginMs: number, delayMs: number, addMs: number): Place | null {
  if (slot === null) return null;
  const at = slot - marginMs + addMs;
  return { at, until: at + delayMs + SPARE_MS, slot, marginMs };
}
