/** Saves what a sync has done: for the run history, the metrics, the log, and the lease that goes on. */
import { asBasetideError } from "../../errors";
import type { Logger } from "../../log";
import { newReport } from "../engine";
import type { Host, RunReport, SyncedBase } from "../host";
import type { Lease } from "./lease";

/**
 * Saves a report for the run history and the metrics.
 *
 * @returns the base as it is now, if that is known without reading it
 */
export async function saveRun(
  lease: Lease,
  base: SyncedBase,
  report: RunReport,
): Promise<SyncedBase | undefined> {
  const { ctx, cache } = lease;
  // A failure that is caused by the removal of the replica is not a failure of the base.
  if (report.error && (await hasLeft(ctx, base))) return undefined;
  let saved: SyncedBase | undefined;
  const changedTables = [...cache.changedTables];
  cache.changedTables.clear();
  try {
    saved = await ctx.host.saveRun(base, { ...report, changedTables });
  } catch (error) {
    // The next sync reports them again.
    cache.issuesState = null;
    for (const id of changedTables) cache.changedTables.add(id);
    throw error;
  }
  ctx.syncMetrics.observe(report, lease.syncedFrom);
  logRun(ctx.log, report);
  if (report.isBackground) return undefined;
  lease.hasFailed = report.error !== undefined && report.error.code !== "replica_busy";
  if (report.error) {
    cache.failures++;
    cache.failedWith = report.error;
  }
  if (!report.completedAt) return undefined;
  lease.syncedFrom = report.kind === "live" ? null : report.startedAt;
  cache.failures = 0;
  return saved;
}

/**
 * Returns whether the base is being deleted, is gone, or was moved to another database; false if the control plane
 * cannot be asked.
 */
export async function hasLeft({ host }: { host: Pick<Host, "facts"> }, base: SyncedBase): Promise<boolean> {
  const known = await host.facts(base.id).then(
    (facts) => ({ facts }),
    () => null,
  );
  if (!known) return false;
  const { facts } = known;
  return (
    !facts || facts.state === "deleting" || facts.state === "moving" || facts.databaseId !== base.database.id
  );
}

/**
 * First syncs, rebuilds and failures are logged as info or warnings. Sweeps, cycles and live batches repeat all the
 * time and are logged as debug.
 */
function logRun(log: Logger, { error, tables: _, issues: __, ...facts }: RunReport): void {
  if (error) log.warn({ ...facts, code: error.code, error }, "sync failed");
  else if (facts.kind === "sweep" || facts.kind === "rapid" || facts.kind === "live")
    log.debug(facts, "sync completed");
  else log.info(facts, "sync completed");
}

/** Returns a failed run for an error that prevented a lease from starting. */
export function failedRun(error: unknown): RunReport {
  return { ...newReport(), error: asBasetideError(error) };
}
