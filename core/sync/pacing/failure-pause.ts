/**
 * How long to wait before a failed action is retried: with jitter, so that retries do not coincide, and with growing
 * pauses. And which failures are the whole base's.
 */

import { jittered } from "../../async";
import { type BasetideError, isBasetideError, type NextStep, nextStep } from "../../errors";
import { isConnectionError } from "../../postgres";
import { SHORTEST_MS } from "./limits";

/** Pause after a failed sync, schema check or lease; it doubles with each further failure in a row. */
export const FIRST_FAILURE_PAUSE_MS = 2000;
export const MAX_FAILURE_PAUSE_MS = 60_000;
const MAX_ITEM_PAUSE_MS = 20_000;
const OUTAGE_GROWTH = 16 / 15;

/** Returns the pause after this many failures in a row, the last of them `error`, ms. */
export function failurePauseMs(failures: number, error?: unknown): number {
  // A query that holds one table for long is no reason for other tables to wait longer.
  if (isBasetideError(error, "replica_busy"))
    return jittered(1, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  if (!isOutage(error)) return jittered(failures, FIRST_FAILURE_PAUSE_MS, MAX_FAILURE_PAUSE_MS);
  const most = Math.min(MAX_FAILURE_PAUSE_MS, SHORTEST_MS * OUTAGE_GROWTH ** (failures - 1));
  return most * (0.5 + Math.random() / 2);
}

/**
 * The same for one item of work, of which others do not depend: it is done soon after it can be. One whose table is locked
 * uses one of the base's two connections while it waits for the lock, so it is tried less and less often, too.
 */
export function itemPauseMs(failures: number, error?: unknown): number {
  const pauseMs = failurePauseMs(failures, isBasetideError(error, "replica_busy") ? undefined : error);
  return Math.min(MAX_ITEM_PAUSE_MS, pauseMs);
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
