/** Saves what a sync has done: for the run history, the metrics, the log, and the lease that goes on. */
import type { Context } from "../../context";
import { type Base, type RunReport, recordRun, syncFacts } from "../../control/bases";
import { nameSqlUsers } from "../../control/placement";
import type { Lease } from "./lease";
import { logRun } from "./log-run";

/** Saves a report for the run history and the metrics. */
export async function saveRun(lease: Lease, base: Base, result: RunReport): Promise<void> {
  const { ctx, cache } = lease;
  // A failure that is caused by the removal of the replica is not a failure of the base.
  if (result.error && (await hasLeft(ctx, base))) return;
  const report = { ...result };
  if (result.error?.code === "replica_busy") {
    const message = await nameSqlUsers(ctx.db, base.database.id, result.error.message);
    report.error = { code: "replica_busy", message };
  }
  const isCapOver = base.error?.code === "source_billing_limit";
  // Postgres would parse and compare them.
  const areKnown =
    report.kind === "sweep" && !report.isBackground && Bun.deepEquals(report.tables, base.tables);
  try {
    await recordRun(ctx.db, base.id, areKnown ? { ...report, tables: undefined } : report, {
      isCapOver,
      resyncRequestedAt: base.resyncRequestedAt,
    });
  } catch (error) {
    // The next sync reports them again.
    cache.issuesState = null;
    throw error;
  }
  ctx.syncMetrics.observe(report, lease.syncedFrom);
  logRun(ctx.log, report);
  if (report.isBackground) return;
  lease.hasFailed = report.error !== undefined && report.error.code !== "replica_busy";
  if (report.error) {
    cache.failures++;
    cache.failedWith = result.error;
  }
  if (!report.completedAt) return;
  lease.syncedFrom = report.kind === "live" ? null : report.startedAt;
  cache.failures = 0;
}

/**
 * Returns whether the base is being deleted, is gone, or was moved to another database; false if the control plane
 * cannot be asked.
 */
export async function hasLeft({ db }: Pick<Context, "db">, base: Base): Promise<boolean> {
  const known = await syncFacts(db, [base.id]).catch(() => null);
  const facts = known?.[0];
  if (!known) return false;
  return (
    !facts || facts.state === "deleting" || facts.state === "moving" || facts.databaseId !== base.database.id
  );
}
