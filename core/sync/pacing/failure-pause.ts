/** How long to wait before what failed is tried again: never at the same moment as others, never hammering. */

import { jittered } from "../../async";
import { isBasetideError } from "../../errors";
import { isConnectionError } from "../../postgres";

/** After a sync, a look or a lease that failed; it doubles with each further one in a row. */
const FIRST_FAILURE_PAUSE_MS = 2000;
const MAX_FAILURE_PAUSE_MS = 60_000;
/**
 * While a database of ours is away pauses grow by a fifteenth, so that each is about a fifteenth of the time that it has
 * been away: after a minute it is used again within 5 s of its return, and one that is gone costs a try a minute.
 */
const FIRST_OUTAGE_PAUSE_MS = 1000;
const OUTAGE_GROWTH = 16 / 15;

/** Pause after so many failures in a row, the last of them `error`, ms. */
export function failurePauseMs(failures: number, error?: unknown): number {
  // A query that holds one table for long is no reason for the others to wait longer.
  if (isBasetideError(error, "replica_busy"))
    return jittered(1, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  if (!isOutage(error)) return jittered(failures, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  const most = Math.min(MAX_FAILURE_PAUSE_MS, FIRST_OUTAGE_PAUSE_MS * OUTAGE_GROWTH ** (failures - 1));
  return most * (0.5 + Math.random() / 2);
}

/** Is it a database of ours that is away, and nothing about the base? */
export function isOutage(error: unknown): boolean {
  return isBasetideError(error)
    ? error.code === "control_unavailable" || error.code === "replica_unavailable"
    : isConnectionError(error);
}
