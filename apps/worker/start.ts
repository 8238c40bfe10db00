/** Starts a worker: its ledger and queue, its jobs, and its port for health and metrics. */
import { Elysia } from "elysia";
import { startAlerts } from "../../core/alerts";
import type { Context } from "../../core/context";
import { healthRoutes } from "../../core/http/health";
import { listen } from "../../core/http/listen";
import { openQueue } from "../../core/queue";
import { CallCounter, createLedger, type Ledger } from "../../core/quota";
import { platforms } from "../../core/source";
import { BudgetWatch, type holdLease, PingWatch, SettingsWatch, syncMetrics } from "../../core/sync";
import { runWorker, type Worker } from "./worker";

export interface RunningWorker {
  port: number;
  worker: Worker;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; WORKER_PORT unless given
 * @param options.ledger the control plane's unless given
 * @param options.lease what holding a lease of a base is; that of the sync engine unless given
 * @throws BasetideError `port_taken`
 */
export async function startWorker(
  ctx: Context,
  options: { port?: number; ledger?: Ledger; lease?: typeof holdLease } = {},
): Promise<RunningWorker> {
  const health = healthRoutes({ metrics: ctx.metrics, ready: async () => void (await ctx.db`select 1`) });
  const listener = listen(new Elysia().use(health), {
    port: options.port ?? ctx.config.workerPort,
    portVariable: "WORKER_PORT",
  });
  const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: true });
  const alerts = await startAlerts(ctx, queue.boss);
  const callCounter = new CallCounter(ctx);
  const worker = await runWorker(
    {
      ...ctx,
      ledger: options.ledger ?? createLedger(ctx),
      platforms: platforms(ctx.config),
      syncMetrics: syncMetrics(ctx.metrics),
      settingsWatch: new SettingsWatch(ctx),
      pings: new PingWatch(ctx),
      budgetWatch: new BudgetWatch(ctx),
      callCounter,
    },
    queue,
    options.lease,
  );
  return {
    port: listener.port,
    worker,
    async stop() {
      await worker.stop();
      await callCounter.stop();
      await alerts.stop();
      await queue.close();
      await listener.stop();
    },
  };
}
