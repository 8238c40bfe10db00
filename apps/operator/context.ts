/**
 * The context of one command, opened before it and closed after it.
 *
 * Without DATABASE_URL, the command uses the embedded Postgres that `bun run up` has started over the same DATA_DIR, at
 * the address that it stored there, or that `bun run up --sandbox` has started.
 */
import { existsSync, readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../core/config";
import type { Context } from "../../core/context";
import type { ManagementContext } from "../../core/control/bases";
import { BasetideError } from "../../core/errors";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";

/** The folder of `bun run up --sandbox` within DATA_DIR. */
const SANDBOX = "sandbox";

/** Runs `work` with a context that logs nothing: standard output is for the answer. */
export async function withContext<T>(work: (ctx: Context) => Promise<T>): Promise<T> {
  const config = readConfig(process.env);
  const ctx = createContext({ ...config, ...controlPlane(config), logLevel: "silent" }, "operator");
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

/** The URL of the control plane, and the folder that has its secret key. @throws BasetideError `config_invalid` */
function controlPlane({ databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">) {
  if (databaseUrl !== undefined) return { databaseUrl, dataDir };
  const folders = [dataDir, join(dataDir, SANDBOX)];
  for (const folder of folders) {
    const path = join(folder, "database-url");
    if (!existsSync(path)) continue;
    if (folder !== dataDir) console.error(`Using the sandbox in ${folder}`);
    return { databaseUrl: readFileSync(path, "utf8").trim(), dataDir: folder };
  }
  throw new BasetideError(
    "config_invalid",
    `There is no control plane: DATABASE_URL is not set, and \`bun run up\` has not stored an address in ${folders.join(" or ")}. Set DATABASE_URL, or set DATA_DIR to the folder of \`bun run up\``,
  );
}
