/**
 * A worker whose leases send no request to a source and write no replica, for the simulation of a large fleet. All of
 * their work with the control plane is real. Configured by the environment, like a worker.
 *
 * A base's name sets its load: `busy` syncs at its full rate, ten requests a sync; `small` needs one request and is
 * synced every second; any other base is in live mode and quiet.
 */

import { startWorker } from "../../apps/worker/start";
import { wait } from "../../core/async";
import { readConfig } from "../../core/config";
import { getBase } from "../../core/control/bases";
import { quotaKeyOf } from "../../core/control/budgets";
import { createContext } from "../../core/process";
import { newReport } from "../../core/sync/engine";
import type { holdLease } from "../../core/sync/lease";
import { BaseCache } from "../../core/sync/state";

const LEASE_MS = 60_000;
const SHARE = 3;
const REQUESTS_PER_SYNC: Record<string, number> = { busy: 10, small: 1 };
const MIN_SYNC_INTERVAL_MS = 1000;

const context = createContext(readConfig(process.env), "worker");

const lease: typeof holdLease = async (ctx, baseId, caches, signals) => {
  const until = performance.now() + LEASE_MS;
  const base = await getBase(context.db, baseId);
  await ctx.host.replicaTarget(base);
  await ctx.host.access(base);
  caches.set(baseId, new BaseCache(1));
  const paused = new AbortController();
  using _watching = ctx.host.watch(baseId, (facts) => {
    if (facts?.state === "paused") paused.abort();
    return false;
  });
  const stop = AbortSignal.any([signals.stop, paused.signal]);
  try {
    if (base.state === "paused") return null;
    while (performance.now() < until) {
      const requests = REQUESTS_PER_SYNC[base.name];
      if (requests === undefined) await wait(until - performance.now(), stop);
      else {
        const report = newReport();
        const from = performance.now();
        for (let sent = 0; sent < requests; sent++)
          await ctx.limiter.acquireSync(quotaKeyOf(base), SHARE, stop);
        await ctx.host.saveRun(base, {
          ...report,
          completedAt: new Date(),
          seen: requests * 100,
          requests,
        });
        await wait(Math.max(0, MIN_SYNC_INTERVAL_MS - (performance.now() - from)), stop);
      }
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  }
  return 0;
};

const worker = await startWorker(context, { lease });
console.log("started");
process.on("SIGTERM", async () => {
  await worker.stop();
  process.exit(0);
});
