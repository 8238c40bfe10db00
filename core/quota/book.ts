/** What a place in a key's quota is, and the two books that hand places out agree on. */

/** What has a quota of its own: a source base, whoever's API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;

export type CallKind = "sync" | "client";

export type BlockReason = "rate_limited" | "billing_limit";

/** The right to send one request, within one span of time. */
export interface Place {
  /** From when on, on this process's clock (ms). */
  at: number;
  /** Until when; the windows after it count from here. */
  until: number;
  /** Until when, as the book says it: what a place is given back by. */
  slot: number;
}

export interface Booking {
  /** One per call wanted, in order; null when there is no place within its reach. */
  places: (Place | null)[];
  /** Earliest time (this process's clock, ms) that one call more could get as things stand. */
  nextAt: number;
}

export interface Book {
  /**
   * Books calls.
   *
   * @param withinMs one per call wanted: how far ahead its place may be
   * @param back slots that were booked here and are not used
   * @param lateMs how long after its time a place is to be good: what this process is late by, 0 to `MOST_LATE_MS`
   */
  take(withinMs: number[], back: number[], lateMs: number): Promise<Booking>;
  /** Was the place made void by a block that began after it was booked? */
  isVoid(place: Place): Promise<boolean>;
  /** The place's call goes out only now, or may have a moment ago: the window after it counts from now. Never fails. */
  wentLate(place: Place): Promise<void>;
}

/**
 * The time that five requests must span, ms: a second, and 25 ms for requests that reach the source later than
 * others. `quota_take` in sql/control has the same.
 */
export const WINDOW_MS = 1025;
/** A place used later than this after its span counts as missed, ms; what is left of those 25 ms is the network's. */
export const SPARE_MS = 5;
/** The longest that a place is good after its time, ms. `quota_block` and `quota_user_place` have the same. */
export const MOST_LATE_MS = 100;

/**
 * A place as the shared book tells of it.
 *
 * @param slot until when it is good, by the book; null: there is none
 * @param lateMs for how long it is good
 * @param addMs what makes the book's times this process's
 */
export function placeOf(slot: number | null, lateMs: number, addMs: number): Place | null {
  return slot === null ? null : { at: slot - lateMs + addMs, until: slot + addMs, slot };
}

/** From when on a place is good, as the book says it. */
export function beginOf({ at, until, slot }: Place): number {
  return slot - (until - at);
}
