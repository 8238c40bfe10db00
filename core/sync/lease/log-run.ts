/** Logs a run, and records a lease that failed to start as a run of its base. */

import { asBasetideError } from "../../errors";
import type { Logger } from "../../log";
import { newReport } from "../engine";
import type { RunReport } from "../host";

/**
 * First syncs, rebuilds and failures are logged as info or warnings. Sweeps, cycles and live batches repeat all the
 * time and are logged as debug.
 */
export function logRun(log: Logger, { error, tables: _, issues: __, ...facts }: RunReport): void {
  if (error) log.warn({ ...facts, code: error.code, error }, "sync failed");
  else if (facts.kind === "sweep" || facts.kind === "rapid" || facts.kind === "live")
    log.debug(facts, "sync completed");
  else log.info(facts, "sync completed");
}

/** Returns a failed run for an error that prevented a lease from starting. */
export function failedRun(error: unknown): RunReport {
  return { ...newReport(), error: asBasetideError(error) };
}
