/**
 * Measures how late this process uses its reservations: how much longer than at best its timers and the control
 * plane's answers take. With the spread of the network (core/http/connections/round-trips.ts) it is the margin of
 * each reservation.
 */
import { MOST_DELAY_MS, SPARE_MS } from "./backend";

/** How much the delay grows with each request that is later, ms. */
const STEP_MS = 5;
/** The share of requests that may be later than the delay. */
const LATER_SHARE = 0.05;

export interface SchedulingDelay {
  /** How long after its time a request may be sent, ms: 0 on a machine with spare CPU. */
  readonly ms: number;
  /** Records that a request was sent, or would have been sent, `delayMs` after its time. */
  learn(delayMs: number): void;
}

/**
 * Estimates, in small steps, the delay that 19 of 20 requests do not exceed.
 *
 * Source: Robbins and Monro, A Stochastic Approximation Method (1951), for a quantile.
 */
export function createSchedulingDelay(): SchedulingDelay {
  let ms = 0;
  return {
    get ms() {
      return ms;
    },
    learn(delayMs) {
      const step = delayMs > ms + SPARE_MS ? STEP_MS : (-STEP_MS * LATER_SHARE) / (1 - LATER_SHARE);
      ms = Math.min(MOST_DELAY_MS, Math.max(0, ms + step));
    },
  };
}
