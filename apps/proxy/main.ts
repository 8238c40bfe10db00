/** The proxy as a process of its own. */
import { ensureDefaultCluster, migrateControl } from "../../core/control";
import { runProcess } from "../../core/start";
import { startProxy } from "./start";

await runProcess("proxy", async (ctx, releases) => {
  await migrateControl(ctx.config.databaseUrl!, ctx.log);
  await ensureDefaultCluster(ctx);
  const proxy = await startProxy(ctx);
  releases.defer(() => proxy.stop());
  ctx.log.info({ port: proxy.port }, "proxy is up");
});
