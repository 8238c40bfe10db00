/** How long to wait before what failed is tried again: never at the same moment as others, never hammering. */

/** After a sync, a look or a lease that failed; it doubles with each further one in a row. */
const FIRST_FAILURE_PAUSE_MS = 2000;
const MAX_FAILURE_PAUSE_MS = 60_000;

/** Doubling from `firstMs` to `maxMs` with each attempt (from 1), and jittered by half. */
export function jittered(attempt: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random());
}

/** Pause after so many failures in a row, ms. */
export function failurePauseMs(failures: number): number {
  return jittered(failures, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
}
