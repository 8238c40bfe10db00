/** What leases are held with, in a worker and in its child processes. */
import type { Context } from "../../core/context";
import { CallCounter, createLedger, type Ledger } from "../../core/limiter";
import { platforms } from "../../core/source";
import { SettingsWatch, type SyncContext, syncMetrics } from "../../core/sync/lease";
import { PingWatch } from "../../core/sync/modes/live";
import { BudgetWatch } from "../../core/sync/pacing";

/** @param ledger the control plane's unless given */
export function createSyncContext(ctx: Context, ledger: Ledger = createLedger(ctx)): SyncContext {
  return {
    ...ctx,
    ledger,
    platforms: platforms(ctx.config),
    syncMetrics: syncMetrics(ctx.metrics),
    settingsWatch: new SettingsWatch(ctx),
    pings: new PingWatch(ctx),
    budgetWatch: new BudgetWatch(ctx),
    callCounter: new CallCounter(ctx),
  };
}
