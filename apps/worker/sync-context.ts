/** Creates the context for leases, in a worker and in its child processes. */
import type { Context } from "../../core/context";
import type { CallCounter, RateLimiter } from "../../core/limiter";
import { platforms } from "../../core/source";
import { SettingsWatch, type SyncContext, syncMetrics } from "../../core/sync/lease";
import { NotificationListener } from "../../core/sync/modes/live";
import { BudgetWatch } from "../../core/sync/pacing";

export function createSyncContext(ctx: Context, limiter: RateLimiter, callCounter: CallCounter): SyncContext {
  return {
    ...ctx,
    limiter,
    platforms: platforms(ctx.config),
    syncMetrics: syncMetrics(ctx.metrics),
    settingsWatch: new SettingsWatch(ctx),
    notifications: new NotificationListener(ctx),
    budgetWatch: new BudgetWatch({ ...ctx, callCounter }),
    callCounter,
  };
}
