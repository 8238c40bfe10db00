/** A reservation against a key's rate limit, and the interface that both limiter backends implement. */

/** Identifies one rate limit: a source base, regardless of which API key is used (`airtable:appXXXX`). */
export type QuotaKey = string;

/**
 * `live`: a sync request for a change that someone waits to see; at least one reservation in five goes to these.
 * `named`: the live request that reads what the feed has just named; it may go out in the same second as the read
 * of the feed. `unproven`: a client's request with a key that the source has not accepted for the base; it comes
 * after clients and sync.
 */
export type LivePriority = "live" | "named";
export type Priority = "sync" | LivePriority | "client" | "unproven";

export type BlockReason = "rate_limited" | "billing_limit";

/** The right to send one request between `at` and `until`, both on this process's clock (ms). */
export interface Reservation {
  at: number;
  until: number;
  /**
   * The latest time the request reaches the source, on the backend's clock. It identifies a reservation that is
   * returned.
   */
  arrivesBy: number;
  /** Time from `at` to the arrival at the source at the latest, ms. */
  marginMs: number;
  /** How often reservations that were made in advance had been revoked when it was made, of any key. */
  revocations: number;
}

export interface Grant {
  /**
   * One per requested reservation, in order; null if none was free within its reach. Those that were made in advance
   * come last.
   */
  reservations: (Reservation | null)[];
  /** Earliest time (this process's clock, ms) at which one more request could be granted, as far as is known now. */
  nextAt: number;
}

/** How much the time that a request takes to reach the source varies: the process's part and the network's part. */
export interface Margin {
  /** From the time a request may be sent to the time it is sent, ms. */
  delayMs: number;
  /** From there to the source, ms above the minimum. */
  spreadMs: number;
  /**
   * How much longer earlier requests may have taken than measured, ms: the process's path to the source is new. It is
   * no part of the reservation, but added to the windows before it.
   */
  dropMs: number;
}

export interface AcquireOptions {
  /**
   * Until then (this process's clock, ms) the call may wait for those of other keys, to share a statement with them; at
   * once if absent. A call of sync may wait SHARED_MS after the last statement in any case.
   */
  latestAt?: number;
  /** Returns false if nothing is left to reserve when the statement is sent. */
  isWanted?: () => boolean;
  /** Reservations to make in advance, besides those requested; fewer if the key's other requests do not allow it. */
  ahead?: number;
}

export interface LimiterBackend {
  /**
   * Reserves requests.
   *
   * @param withinMs one per request: how far ahead its reservation may begin
   * @param back reservations of this backend that are returned unused
   */
  acquire(withinMs: number[], back: number[], margin: Margin, options?: AcquireOptions): Promise<Grant>;
  /** Absent if this backend makes no reservations in advance. */
  readonly advance?: {
    /** The time between two of them, ms. */
    readonly spacingMs: number;
    /** Whether they would save calls at present. */
    readonly isWorthwhile: boolean;
    /** Returns whether an answer has shown that the reservation can no longer be revoked, and has not been. */
    isValid(reservation: Reservation): boolean;
  };
  /** Absent if this backend makes no standing reservations. */
  readonly standing?: {
    /**
     * Calls `renew` a moment after a request, so that an answer that comes at once is passed on first.
     *
     * @returns a function that cancels it
     */
    soon(renew: () => void): () => void;
    /**
     * Records that those were used (what identifies them), and makes one if it is wanted. It may be used for
     * STANDING_MS and the delay of `margin`.
     *
     * @returns null if there is none
     */
    renew(used: number[], isWanted: boolean, margin: Margin): Promise<Reservation | null>;
  };
  /** Returns whether a block that began after the reservation was granted has voided it. */
  isVoid(reservation: Reservation): Promise<boolean>;
  /** Reports that the request was sent late, or may have been: its window counts from now. Never fails. */
  reportLateSend(reservation: Reservation): Promise<void>;
}

/** The part of every margin that is fixed, ms; `quota_acquire_all` has the same. */
export const LEAST_MARGIN_MS = 20;
/** The process's part of the fixed margin: timers are exact to a millisecond or two. */
export const SPARE_MS = 5;
/** The caps on the process's and the network's part of a margin; the largest margin is the sum of all three, ms. */
export const MOST_DELAY_MS = 100;
const MOST_SPREAD_MS = 180;
/** The largest margin including what the source's refusals add; `quota_acquire_all` has the same. */
export const MOST_MARGIN_MS = 400;

/**
 * How far ahead sync reserves, ms, plus the scheduling delay; `quota_acquire_all` has the same. The time ahead is left to
 * clients, except for what saves sync a second call when it calls early, with those of other bases in one statement.
 */
export const SYNC_REACH_MS = 30;
/**
 * How much earlier than `nextAt` sync calls, ms, plus the scheduling delay: the time of timers and the call itself.
 */
export const SYNC_EARLY_MS = 4;
/** How long sync's call may wait for those of other bases, ms; it is made earlier by as much if its time is known. */
export const SHARED_MS = SYNC_REACH_MS - SYNC_EARLY_MS - 1;

/** How long before it begins an advance reservation can no longer be revoked, ms; `quota_acquire_all` has the same. */
export const FIRM_MS = 60;

/**
 * How long a standing reservation may wait for its request, ms; `quota_acquire_all` and `quota_acquire_standing` have the
 * same.
 */
export const STANDING_MS = 600;

/** Returns the length of a reservation: the whole margin without the drop. */
export function wholeMs({ delayMs, spreadMs }: Pick<Margin, "delayMs" | "spreadMs">): number {
  return LEAST_MARGIN_MS + Math.min(MOST_DELAY_MS, delayMs) + Math.min(MOST_SPREAD_MS, spreadMs);
}

/**
 * Converts a reservation from the backend's clock to this process's clock.
 *
 * @param arrivesBy null if none was granted
 * @param marginMs from its beginning to `arrivesBy`
 * @param delayMs how long of that it may wait in this process
 * @param addMs added to the backend's times to have them on this process's clock
 * @param revocations as in `Reservation`
 */
export function reservationOf(
  arrivesBy: number | null,
  marginMs: number,
  delayMs: number,
  addMs: number,
  revocations = 0,
): Reservation | null {
  if (arrivesBy === null) return null;
  const at = arrivesBy - marginMs + addMs;
  return { at, until: at + delayMs + SPARE_MS, arrivesBy, marginMs, revocations };
}
