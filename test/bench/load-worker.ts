/**
 * A worker for `load.ts`. With LOAD_UNLIMITED, its requests wait for a connection, but for no rate limit. LOAD_PROFILE
 * names a folder for a CPU profile.
 */
import { startWorker } from "../../apps/worker/start";
import { runProcess } from "../../core/process";
import { unlimitedLimiter } from "../support/unlimited-limiter";
import { reportHeapOnSignal } from "./heap-report";
import { profileOnSignal } from "./worker-profile";

reportHeapOnSignal();
if (process.env.LOAD_PROFILE) profileOnSignal(process.env.LOAD_PROFILE);
await runProcess("worker", async (ctx, releases) => {
  const limiter = process.env.LOAD_UNLIMITED
    ? unlimitedLimiter({
        acquireSync: async (_key, _share, signal, { connections } = {}) => connections?.take(signal),
      })
    : undefined;
  const worker = await startWorker(ctx, { ...(limiter && { limiter }) });
  releases.defer(() => worker.stop());
});
