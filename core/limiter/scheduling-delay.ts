/**
 * By how much this process is late for its reservations: what its timers and the answers of the control plane take more than at
 * best. With the spread of the network (core/http/connections/round-trips.ts) it is the margin of each reservation.
 */
import { MOST_DELAY_MS, SPARE_MS } from "./backend";

/** How much longer the delay gets with each call that is later, ms. */
const STEP_MS = 5;
/** Of all calls, those that may be later than their delay. */
const LATER_SHARE = 0.05;

export interface SchedulingDelay {
  /** How long after its time a call may go out, ms: 0 where there is CPU to spare. */
  readonly ms: number;
  /** A call went, or would have gone, out so long after its time. */
  learn(delayMs: number): void;
}

/**
 * Finds the delay that all but one in twenty calls keep to, by small steps.
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
