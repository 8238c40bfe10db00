/**
 * The context of one command, opened before it and closed after it.
 *
 * Without DATABASE_URL, the command uses the embedded Postgres that `bun run up` has started over the same DATA_DIR, at
 * the address that it stored there.
 */
import { existsSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../core/config";
import type { Context } from "../../core/context";
import type { ManagementContext } from "../../core/control/bases";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";

/** Runs `work` with a context that logs nothing: standard output is for the answer. */
export async function withContext<T>(work: (ctx: Context) => Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const databaseUrl = config.databaseUrl ?? embeddedUrl(config);
  const ctx = createContext({ ...config, databaseUrl, logLevel: "silent" }, "operator");
  try {
    return await work({ ...ctx, actor: { kind: "cli", name: userInfo().username } });
  } finally {
    await closeContext(ctx);
  }
}

/** The same, with what the management of bases needs. */
export async function withManagement<T>(work: (ctx: ManagementContext) => Promise<T>): Promise<T> {
  return withContext(async (ctx) => {
    const queue = await openQueue(ctx, ctx.config.databaseUrl!, { isWorker: false });
    try {
      return await work({ ...ctx, queue, platforms: platforms(ctx.config) });
    } finally {
      await queue.close();
    }
  });
}

function embeddedUrl(config: Pick<Config, "dataDir">): string | undefined {
  const path = join(config.dataDir, "database-url");
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
