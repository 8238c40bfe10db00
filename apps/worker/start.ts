/** Starts a worker: its ledger and queue, its jobs, and its port for health and metrics. */
import { Elysia } from "elysia";
import type { Context } from "../../core/context";
import { healthRoutes } from "../../core/http/health";
import { listen } from "../../core/http/listen";
import { openQueue } from "../../core/queue";
import { createLedger } from "../../core/quota";
import { platforms } from "../../core/source";
import { SettingsWatch, syncMetrics } from "../../core/sync";
import { runWorker, type Worker } from "./worker";

export interface RunningWorker {
  port: number;
  worker: Worker;
  stop(): Promise<void>;
}

/**
 * @param options.port 0 takes any free one; WORKER_PORT unless given
 * @throws BasetideError `port_taken`
 */
export async function startWorker(ctx: Context, options: { port?: number } = {}): Promise<RunningWorker> {
  const health = healthRoutes({ metrics: ctx.metrics, ready: async () => void (await ctx.db`select 1`) });
  const listener = listen(new Elysia().use(health), {
    port: options.port ?? ctx.config.workerPort,
    portVariable: "WORKER_PORT",
  });
  const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: true });
  const worker = await runWorker(
    {
      ...ctx,
      ledger: createLedger(ctx),
      platforms: platforms(ctx.config),
      syncMetrics: syncMetrics(ctx.metrics),
      settingsWatch: new SettingsWatch(ctx),
    },
    queue,
  );
  return {
    port: listener.port,
    worker,
    async stop() {
      await worker.stop();
      await queue.close();
      await listener.stop();
    },
  };
}
