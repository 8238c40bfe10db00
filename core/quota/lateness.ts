/** How late a process is for its places: what its timers and the answers of the control plane take more than at best. */
import { MOST_LATE_MS, SPARE_MS } from "./book";

/** How much longer the spans get with each call that is late for its own, ms. */
const STEP_MS = 5;
/** Of all calls, those that may be late for their span. */
const MISSED_SHARE = 0.05;

export interface Lateness {
  /** How long after its time a place should be good, ms: 0 where there is CPU to spare. */
  readonly ms: number;
  /** A call got to its place so long after the place's time. */
  learn(lateMs: number): void;
}

/**
 * Finds the span that all but one in twenty calls keep to, by small steps.
 *
 * Source: Robbins and Monro, A Stochastic Approximation Method (1951), for a quantile.
 */
export function createLateness(): Lateness {
  let ms = 0;
  return {
    get ms() {
      return ms;
    },
    learn(lateMs) {
      const step = lateMs > ms + SPARE_MS ? STEP_MS : (-STEP_MS * MISSED_SHARE) / (1 - MISSED_SHARE);
      ms = Math.min(MOST_LATE_MS, Math.max(0, ms + step));
    },
  };
}
