/**
 * What every process does at its start and end: the context, the signals, and releasing in reverse order.
 */
import { once } from "node:events";
import { collectDefaultMetrics, Registry } from "prom-client";
import { type Config, readConfig } from "./config";
import type { Context } from "./context";
import { asControlError, connectControl } from "./control/db";
import { BasetideError } from "./errors";
import { createLogger } from "./log";
import { createSecretBox, loadSecretKey } from "./secrets";

/** Longest wait for connections to end, in seconds: what still runs then is cut off. */
const CLOSE_TIMEOUT_SECONDS = 5;

/** Something that was started: a listener, a worker. */
export interface Running {
  stop(): Promise<void>;
}

/**
 * Log, secrets, metrics and a pool on the control plane, which connects at its first query.
 *
 * @param role the process's name in log and metrics: `console`, `worker`, `proxy`
 * @throws BasetideError `config_invalid` without DATABASE_URL, or without SECRET_KEY in production
 */
export function createContext(config: Config, role: string): Context {
  if (config.databaseUrl === undefined) {
    throw new BasetideError(
      "config_invalid",
      "DATABASE_URL: required here (`bun run up` is the way that brings its own Postgres)",
    );
  }
  const metrics = new Registry();
  metrics.setDefaultLabels({ role });
  collectDefaultMetrics({ register: metrics });
  return {
    config,
    db: connectControl(config.databaseUrl),
    log: createLogger(config.logLevel, role),
    secrets: createSecretBox([loadSecretKey(config)]),
    metrics,
  };
}

export async function closeContext(ctx: Context): Promise<void> {
  await ctx.db.end({ timeout: CLOSE_TIMEOUT_SECONDS });
  ctx.metrics.clear();
}

/**
 * The whole life of a process: configuration and context, `start`, then SIGTERM or SIGINT, then everything is
 * released in the reverse order. A second signal ends it at once. Whatever `start` throws becomes one clear line on
 * standard error and exit code 1.
 *
 * @param start is given the context and a stack: what is put there is released in reverse order, also when a later
 *   step of the start fails
 */
export async function runProcess(
  role: string,
  start: (ctx: Context, releases: AsyncDisposableStack) => Promise<void>,
): Promise<void> {
  const releases = new AsyncDisposableStack();
  try {
    const ctx = createContext(readConfig(process.env), role);
    releases.defer(() => closeContext(ctx));
    const signal = nextSignal();
    await start(ctx, releases);
    ctx.log.info("started");
    ctx.log.info({ signal: await signal }, "stopping");
    void nextSignal().then(() => process.exit(1));
    await releases.disposeAsync();
    ctx.log.info("stopped");
  } catch (error) {
    console.error(`basetide ${role}: ${asControlError(error).message}`);
    if (!(error instanceof BasetideError)) console.error(error);
    process.exitCode = 1;
    await releases.disposeAsync().catch(() => {});
  }
}

/** The first of them to come. */
function nextSignal(): Promise<string> {
  const names = ["SIGTERM", "SIGINT"];
  return Promise.race(names.map((name) => once(process, name).then(() => name)));
}
