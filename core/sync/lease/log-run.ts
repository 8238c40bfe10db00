/** What a run leaves in the log, and a lease that could not even start in the base's runs. */
import type { RunReport } from "../../control/bases";
import { asBasetideError } from "../../errors";
import type { Logger } from "../../log";
import { newReport } from "../engine";

/** First syncs, rebuilds and failures are news; sweeps, turns and rounds go on for ever. */
export function logRun(log: Logger, { error, tables: _, issues: __, ...facts }: RunReport): void {
  if (error) log.warn({ ...facts, code: error.code, error }, "sync failed");
  else if (facts.kind === "sweep" || facts.kind === "rapid" || facts.kind === "live")
    log.debug(facts, "sync completed");
  else log.info(facts, "sync completed");
}

/** An error that kept a lease from even starting, as a run for people to see. */
export function failedRun(error: unknown): RunReport {
  return { ...newReport(), error: asBasetideError(error) };
}
