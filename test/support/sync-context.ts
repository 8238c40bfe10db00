/** What a lease of a base needs besides a process's context: for tests that hold leases themselves. */
import { Registry } from "prom-client";
import type { Context } from "../../core/context";
import { CallCounter } from "../../core/limiter";
import { SettingsWatch, type SyncContext, syncMetrics } from "../../core/sync/lease";
import { NotificationListener } from "../../core/sync/modes/live";
import { BudgetWatch } from "../../core/sync/pacing";
import { unlimitedLimiter } from "./unlimited-limiter";

/** Its requests wait for no rate limit. */
export function syncContext(ctx: Context & Pick<SyncContext, "platforms">): SyncContext {
  const callCounter = new CallCounter(ctx);
  return {
    ...ctx,
    limiter: unlimitedLimiter(),
    syncMetrics: syncMetrics(new Registry()),
    settingsWatch: new SettingsWatch(ctx),
    budgetWatch: new BudgetWatch({ ...ctx, callCounter }),
    notifications: new NotificationListener(ctx),
    callCounter,
  };
}
