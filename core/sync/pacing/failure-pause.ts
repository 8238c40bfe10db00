/**
 * How long to wait before a failed action is retried: with jitter, so that retries do not coincide, and with growing
 * pauses. And which failures are the whole base's.
 */

import { jittered } from "../../async";
import { type BasetideError, isBasetideError, type NextStep, nextStep } from "../../errors";
import { isConnectionError } from "../../postgres";

/** Pause after a failed sync, schema check or lease; it doubles with each further failure in a row. */
const FIRST_FAILURE_PAUSE_MS = 2000;
const MAX_FAILURE_PAUSE_MS = 60_000;
const MAX_ITEM_PAUSE_MS = 20_000;
/**
 * While one of our databases is unreachable, pauses grow by a fifteenth, so that each is about a fifteenth of the
 * outage so far. A database that was down for a minute is used again within 5 s of its return, and one that is down
 * for long costs one attempt a minute.
 */
const FIRST_OUTAGE_PAUSE_MS = 1000;
const OUTAGE_GROWTH = 16 / 15;

/** Returns the pause after this many failures in a row, the last of them `error`, ms. */
export function failurePauseMs(failures: number, error?: unknown): number {
  // A query that holds one table for long is no reason for other tables to wait longer.
  if (isBasetideError(error, "replica_busy"))
    return jittered(1, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  if (!isOutage(error)) return jittered(failures, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  const most = Math.min(MAX_FAILURE_PAUSE_MS, FIRST_OUTAGE_PAUSE_MS * OUTAGE_GROWTH ** (failures - 1));
  return most * (0.5 + Math.random() / 2);
}

/** The same for one item of work, of which others do not depend: it is done soon after it can be. */
export function itemPauseMs(failures: number, error?: unknown): number {
  return Math.min(MAX_ITEM_PAUSE_MS, failurePauseMs(failures, error));
}

/** Returns whether the error means that one of our databases is unreachable, which says nothing about the base. */
export function isOutage(error: unknown): boolean {
  return isBasetideError(error)
    ? error.code === "control_unavailable" || error.code === "replica_unavailable"
    : isConnectionError(error);
}

const gravityOf: Record<NextStep, number> = {
  wait: 0,
  retry: 0,
  restart_table: 0,
  check_schema: 1,
  needs_attention: 2,
  stop: 3,
};

/** Returns whether the error ends the sync of the whole base, and not only of one table. */
export function isWholeBases(error: BasetideError): boolean {
  return error.code === "budget_spent" || gravity(error) >= gravityOf.needs_attention;
}

/** Returns how serious the error is, for comparisons. */
export function gravity(error: BasetideError): number {
  return gravityOf[nextStep[error.code]];
}
