/** What a lease of a base needs besides a process's context: for tests that hold leases themselves. */
import { Registry } from "prom-client";
import type { Context } from "../../core/context";
import { createSyncHost } from "../../core/control/sync-host";
import { CallCounter } from "../../core/limiter";
import { type SyncContext, syncMetrics } from "../../core/sync/lease";
import { BudgetWatch } from "../../core/sync/pacing";
import { unlimitedLimiter } from "./unlimited-limiter";

/** Its requests wait for no rate limit. */
export function syncContext(ctx: Context & Pick<SyncContext, "platforms">): SyncContext {
  const callCounter = new CallCounter(ctx);
  const host = createSyncHost(ctx);
  return {
    ...ctx,
    host,
    limiter: unlimitedLimiter(),
    syncMetrics: syncMetrics(new Registry()),
    budgetWatch: new BudgetWatch({ log: ctx.log, host, callCounter }),
    callCounter,
  };
}
