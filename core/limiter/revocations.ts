/**
 * What this process knows of revoked reservations.
 *
 * Reservations that were made in advance can be revoked until FIRM_MS before they begin. The control plane counts
 * revocations, of all keys together; every answer has the count at its time. While reservations are outstanding and no
 * answer comes for another reason, the count is asked for.
 */
import { FIRM_MS, type Reservation } from "./backend";
import type { QuotaClock } from "./clock";

/** The longest time between two answers, ms: one falls into the last FIRM_MS, and has arrived by their end. */
const ASK_AFTER_MS = FIRM_MS / 2;
/** After a revocation, nothing is reserved in advance for this long, ms. */
const PAUSE_MS = 1000;
/** The same when more than MOST_LATE of the reservations began before an answer had come: the control plane is far. */
const LATE_PAUSE_MS = 10_000;
const MOST_LATE = 0.12;
/** One of them in each period, ms, counts for this much in that share: a moment's delay concerns many of them. */
const LATE_WEIGHT = 0.05;
const LATE_PERIOD_MS = 100;
const LEAST_CALLS_PER_SECOND = 50;
const COUNTED_FOR_MS = 1000;

export interface Revocations {
  /** Takes the count of an answer, which was read after the server's clock showed `serverNow`. Answers come in any order. */
  learn(count: number, serverNow: number): void;
  /** The server may be another one from now on. */
  lose(): void;
  /** Counts a call that reserves. */
  countCall(): void;
  /** Reservations have been made in advance, which begin by `until` on the clock. */
  outstanding(until: number): void;
  /** Whether this process makes many calls, and nothing was revoked lately. */
  readonly isSteady: boolean;
  /** Returns whether the reservation can no longer be revoked, and has not been. */
  isValid(reservation: Reservation): boolean;
}

/**
 * @param ask asks for the count; its answer is passed to `learn`
 * @param leastPerSecond with fewer calls, asking for the count costs as much as the calls that it saves
 */
export function watchRevocations(
  clock: QuotaClock,
  ask: () => Promise<void>,
  leastPerSecond = LEAST_CALLS_PER_SECOND,
): Revocations {
  let count = 0;
  let knownAt = -Infinity;
  let learnedAt = -Infinity;
  let steadyFrom = -Infinity;
  let outstandingUntil = -Infinity;
  let isWatching = false;
  let calls = 0;
  let countedFrom = clock.now();
  let callsPerSecond = 0;
  let lateShare = 0;
  let lateAt = -Infinity;

  /** Runs until no reservation is outstanding. */
  async function watch(): Promise<void> {
    isWatching = true;
    while (clock.now() < outstandingUntil) {
      const dueAt = learnedAt + ASK_AFTER_MS;
      if (dueAt > clock.now()) await new Promise<void>((resolve) => clock.at(dueAt, resolve));
      // If it fails, no reservation is valid, and their requests report why.
      else await ask().catch(() => {});
    }
    isWatching = false;
  }

  return {
    learn(newCount, serverNow) {
      if (newCount > count) steadyFrom = clock.now() + PAUSE_MS;
      count = Math.max(count, newCount);
      knownAt = Math.max(knownAt, serverNow);
      learnedAt = clock.now();
    },
    lose() {
      count = 0;
      knownAt = -Infinity;
      outstandingUntil = -Infinity;
    },
    countCall() {
      calls++;
      const passedMs = clock.now() - countedFrom;
      if (passedMs < COUNTED_FOR_MS) return;
      callsPerSecond = (calls * 1000) / passedMs;
      countedFrom += passedMs;
      calls = 0;
    },
    outstanding(until) {
      outstandingUntil = Math.max(outstandingUntil, until);
      if (!isWatching) void watch();
    },
    get isSteady() {
      return callsPerSecond >= leastPerSecond && clock.now() >= steadyFrom;
    },
    isValid({ revocations, arrivesBy, marginMs }) {
      if (revocations !== count) return false;
      const isFirm = knownAt >= arrivesBy - marginMs - FIRM_MS;
      const now = clock.now();
      if (now - lateAt < LATE_PERIOD_MS) return isFirm;
      lateAt = now;
      lateShare += LATE_WEIGHT * (Number(!isFirm) - lateShare);
      if (lateShare > MOST_LATE) {
        steadyFrom = now + LATE_PAUSE_MS;
        lateShare = 0;
      }
      return isFirm;
    },
  };
}
