/** Starts a worker: its rate limiter and queue, its jobs, and its port for health and metrics. */
import { startAlerts } from "../../core/alerts";
import type { Context } from "../../core/context";
import { startWatchdog } from "../../core/control/placement";
import { listen } from "../../core/http";
import { healthAnswers } from "../../core/http/service";
import { CallCounter, createProcessLimiter, type RateLimiter } from "../../core/limiter";
import { requireWritable } from "../../core/postgres";
import { openQueue } from "../../core/queue";
import type { holdLease } from "../../core/sync/lease";
import { runHousekeeping } from "./housekeeping";
import { createSyncContext } from "./sync-context";
import { runWorker, type Worker } from "./worker";

export interface RunningWorker {
  port: number;
  worker: Worker;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; WORKER_PORT unless given
 * @param options.limiter the control plane's unless given
 * @param options.lease holds a lease of a base; the sync engine's unless given
 * @throws BasetideError `port_taken`
 */
export async function startWorker(
  ctx: Context,
  options: { port?: number; limiter?: RateLimiter; lease?: typeof holdLease } = {},
): Promise<RunningWorker> {
  const health = healthAnswers({
    config: ctx.config,
    metrics: ctx.metrics,
    ready: () => requireWritable(ctx.db),
  });
  const listener = listen(
    { fetch: health },
    {
      port: options.port ?? ctx.config.workerPort,
      portVariable: "WORKER_PORT",
      host: ctx.config.host,
      log: ctx.log,
    },
  );
  const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: true });
  await runHousekeeping(queue.boss, ctx);
  const alerts = startAlerts(ctx);
  const watchdog = startWatchdog(ctx);
  const calls = new CallCounter(ctx);
  const sync = createSyncContext(ctx, options.limiter ?? createProcessLimiter(ctx, { calls }), calls);
  const worker = await runWorker(sync, queue, options.lease);
  return {
    port: listener.port,
    worker,
    async stop() {
      await worker.stop();
      await watchdog.stop();
      await sync.limiter.close();
      await calls.flush();
      await alerts.stop();
      await queue.close();
      await listener.stop();
    },
  };
}
