/** Runs the proxy as a process of its own. */
import { ensureDefaultCluster } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { runProcess } from "../../core/process";
import { startProxy } from "./start";

await runProcess("proxy", async (ctx, releases) => {
  await migrateControl(ctx.config.databaseUrl!, ctx.log);
  await ensureDefaultCluster(ctx);
  const proxy = await startProxy(ctx);
  releases.defer(() => proxy.stop());
  ctx.log.info({ port: proxy.port }, "proxy listening");
});
