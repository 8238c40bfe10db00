/** A worker for `rest.ts`. */
import { startWorker } from "../../apps/worker/start";
import { runProcess } from "../../core/process";
import { reportHeapOnSignal } from "./heap-report";

reportHeapOnSignal();
await runProcess("worker", async (ctx, releases) => {
  const worker = await startWorker(ctx);
  releases.defer(() => worker.stop());
});
