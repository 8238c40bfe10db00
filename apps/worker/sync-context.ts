/** Creates the context for leases, in a worker and in its child processes. */
import type { Context } from "../../core/context";
import { createSyncHost } from "../../core/control/sync-host";
import type { CallCounter, RateLimiter } from "../../core/limiter";
import { platforms } from "../../core/source";
import { type SyncContext, syncMetrics } from "../../core/sync/lease";
import { BudgetWatch } from "../../core/sync/pacing";

export type WorkerContext = Context & SyncContext;

export function createSyncContext(
  ctx: Context,
  limiter: RateLimiter,
  callCounter: CallCounter,
): WorkerContext {
  const host = createSyncHost(ctx);
  return {
    ...ctx,
    host,
    limiter,
    platforms: platforms(ctx.config),
    syncMetrics: syncMetrics(ctx.metrics),
    budgetWatch: new BudgetWatch({ log: ctx.log, host, callCounter }),
    callCounter,
  };
}
