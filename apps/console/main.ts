/** Runs a console as its own process. */
import { startAlerts } from "../../core/alerts";
import { ensureDefaultCluster, startSpares } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { runProcess } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";
import { startConsole } from "./start";

await runProcess("console", async (ctx, releases) => {
  const databaseUrl = ctx.config.databaseUrl!;
  await migrateControl(databaseUrl, ctx.log);
  await ensureDefaultCluster(ctx);
  const queue = await openQueue(ctx, databaseUrl, { isWorker: false });
  releases.defer(() => queue.close());
  const alerts = startAlerts(ctx);
  releases.defer(() => alerts.stop());
  const spares = startSpares(ctx);
  releases.defer(() => spares.stop());
  const console = await startConsole({ ...ctx, queue, platforms: platforms(ctx.config), spares });
  releases.defer(() => console.stop());
  ctx.log.info({ port: console.port }, "console listening");
});
