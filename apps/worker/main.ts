/** Runs a worker as a process of its own. */
import { ensureDefaultCluster } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { runProcess } from "../../core/process";
import { startWorker } from "./start";

await runProcess("worker", async (ctx, releases) => {
  await migrateControl(ctx.config.databaseUrl!, ctx.log);
  await ensureDefaultCluster(ctx);
  const worker = await startWorker(ctx);
  releases.defer(() => worker.stop());
  ctx.log.info({ port: worker.port }, "worker listening");
});
