/** Saves what a sync has done: for the run history, the metrics, the log, and the lease that goes on. */
import type { Host, RunReport, SyncedBase } from "../host";
import type { Lease } from "./lease";
import { logRun } from "./log-run";

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
