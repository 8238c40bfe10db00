/**
 * Measures how late this process uses its reservations: how much longer than at best its timers and the control
 * plane's answers take. With the spread of the network (core/http/connections/round-trips.ts) it is the margin of
 * each reservation.
 */
import { MOST_DELAY_MS, SPARE_MS } from "./backend";
import { processClock, type QuotaClock } from "./clock";

/** How much the delay grows with each request that is later, ms. */
const STEP_MS = 5;
/** The share of requests that may be later than the delay: each of them needs a second reservation. */
const LATER_SHARE = 0.02;
/** Of more requests a second, each counts for less. */
const FULL_STEPS_PER_SECOND = 100;
const COUNTED_FOR_MS = 1000;

export interface SchedulingDelay {
  /** How long after its time a request may be sent, ms: 0 on a machine with spare CPU. */
  readonly ms: number;
  /** Records that a request was sent, or would have been sent, `delayMs` after its time. */
  learn(delayMs: number): void;
}

/**
 * Estimates, in small steps, the delay that 49 of 50 requests do not exceed.
 *
 * A process that stands still for a moment is late with every request of that moment. If each of hundreds were a full
 * step, the delay would jump to its cap, and be forgotten before the next time.
 *
 * Source: Robbins and Monro, A Stochastic Approximation Method (1951), for a quantile.
 */
export function createSchedulingDelay(clock: Pick<QuotaClock, "now"> = processClock): SchedulingDelay {
  let ms = 0;
  let stepMs = STEP_MS;
  let count = 0;
  let countedFrom = clock.now();

  function countRequest(): void {
    const passedMs = clock.now() - countedFrom;
    if (passedMs >= COUNTED_FOR_MS) {
      const perSecond = (count * 1000) / passedMs;
      stepMs = STEP_MS * Math.min(1, FULL_STEPS_PER_SECOND / perSecond);
      count = 0;
      countedFrom += passedMs;
    }
    count++;
  }

  return {
    get ms() {
      return ms;
    },
    learn(delayMs) {
      countRequest();
      const isLater = delayMs > ms + SPARE_MS;
      const change = isLater ? stepMs : (-stepMs * LATER_SHARE) / (1 - LATER_SHARE);
      ms = Math.min(MOST_DELAY_MS, Math.max(0, ms + change));
    },
  };
}
