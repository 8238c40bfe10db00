/** How soon a driver tries again for a database that it could not reach, or has lost. */

const FIRST_SECONDS = 0.03;
/** A database that is back is to be used again at once: the driver's own pauses grow to 20 s. */
const MAX_SECONDS = 1;

/** Seconds until the next try after so many that failed in a row; jittered, so that not all come at once. */
export function reconnectPause(failures: number): number {
  return Math.min(FIRST_SECONDS * 2 ** Math.min(failures, 10), MAX_SECONDS) * (0.5 + Math.random() / 2);
}
