/** Startup and shutdown of every process: the context, the signals, and the release of resources in reverse order. */
import { collectDefaultMetrics, Registry } from "prom-client";
import { withTimeout } from "./async";
import { type Config, readConfig } from "./config";
import type { Context } from "./context";
import { BasetideError, errorCodes } from "./errors";
import { observeGateway } from "./external";
import { listenForMetrics } from "./http/service";
import { createLogger, type Logger } from "./log";
import { asControlError, CLOSE_SECONDS, connectControl } from "./postgres";
import { parsePostgresUrl } from "./postgres-url";
import { passwordOf, scrub, scrubberOf } from "./scrub";
import { createSecretBox, loadSecretKeys } from "./secrets";
import { printable } from "./terminal";
import { startTracing } from "./trace";

/** Longest time that a process takes to stop, ms: its supervisor kills it soon after, without a word (systemd after 30 s). */
const STOP_MS = 28_000;

/** A started component: a listener, a worker. */
export interface Running {
  stop(): Promise<void>;
}

/**
 * Creates the log, secrets, metrics and a pool on the control plane, which connects at its first query.
 *
 * @param role the process's name in log and metrics: `console`, `worker`, `proxy`
 * @throws BasetideError `config_invalid` without DATABASE_URL, or without SECRET_KEY in production
 */
export function createContext(config: Config, role: string): Context {
  if (config.databaseUrl === undefined) {
    throw new BasetideError(
      "config_invalid",
      "DATABASE_URL is required (only `bun run up` starts its own Postgres)",
    );
  }
  const metrics = new Registry();
  metrics.setDefaultLabels({ role });
  collectRuntimeMetrics(metrics);
  const log = createLogger(config.logLevel, role, cleanerOf(config));
  observeGateway(log, metrics);
  reportUnused({ DATABASE_URL: config.databaseUrl, REPLICA_URL: config.replicaUrl }, log);
  return {
    config,
    db: connectControl(config.databaseUrl),
    log,
    secrets: createSecretBox(loadSecretKeys(config)),
    metrics,
  };
}

/**
 * Collects the usual metrics of a process, but for the sizes of its heap's spaces. Bun walks the whole heap for them, and
 * no request is answered meanwhile: 0.25 s for 170 MB of objects, at each scrape.
 */
function collectRuntimeMetrics(metrics: Registry): void {
  collectDefaultMetrics({ register: metrics });
  for (const part of ["total", "used", "available"])
    metrics.removeSingleMetric(`nodejs_heap_space_size_${part}_bytes`);
}

/** Logs the URL parameters that have no effect here, so that no operator relies on them. */
function reportUnused(urls: Record<string, string | undefined>, log: Logger): void {
  for (const [variable, url] of Object.entries(urls)) {
    const parsed = url === undefined ? "" : parsePostgresUrl(url);
    if (typeof parsed === "string" || parsed.ignored.length === 0) continue;
    log.warn({ variable, parameters: parsed.ignored }, "parameters of a URL are ignored");
  }
}

/** Returns a function that redacts credentials from text, including this process's own secrets in any form. */
function cleanerOf(config: Config): (text: string) => string {
  const urls = [config.databaseUrl, config.replicaUrl, config.superuserUrl, config.smtpUrl];
  const clients = config.signInProviders.map(({ clientSecret }) => clientSecret);
  return scrubberOf([...loadSecretKeys(config), config.targetSecretKey, ...clients, ...urls.map(passwordOf)]);
}

export async function closeContext(ctx: Context): Promise<void> {
  await ctx.db.end({ timeout: CLOSE_SECONDS });
  ctx.metrics.clear();
}

/**
 * Runs a process from start to end: configuration and context, `start`, then SIGTERM or SIGINT, then everything is
 * released in reverse order. A second signal ends it at once. An error of `start` becomes one clear line on standard
 * error and exit code 1.
 *
 * @param start gets the context and a stack: resources on the stack are released in reverse order, also if a later step
 *   of the start fails
 */
export function runProcess(
  role: string,
  start: (ctx: Context, releases: AsyncDisposableStack) => Promise<void>,
): Promise<void> {
  return runRoles(role, [role], (contexts, releases) => start(contexts[role]!, releases));
}

/**
 * The same for a process of several roles, each with a context of its own.
 *
 * @param name of the process, in errors of the start and in traces
 */
export async function runRoles<Role extends string>(
  name: string,
  roles: readonly Role[],
  start: (contexts: Record<Role, Context>, releases: AsyncDisposableStack) => Promise<void>,
): Promise<void> {
  const releases = new AsyncDisposableStack();
  let clean = scrub;
  try {
    const config = readConfig(process.env);
    const contexts = roles.map((role) => createContext(config, role));
    clean = cleanerOf(config);
    for (const ctx of contexts) releases.defer(() => closeContext(ctx));
    const { log } = contexts[0]!;
    endAtFaults({ log });
    const registries = contexts.map((ctx) => ctx.metrics);
    const metrics = listenForMetrics(config, registries, log);
    if (metrics) releases.defer(() => metrics.stop());
    const { otlpEndpoint } = config;
    if (otlpEndpoint) {
      const tracing = await startTracing(name, otlpEndpoint, log);
      releases.defer(() => tracing.stop());
    }
    const signal = stopSignal();
    const byRole = Object.fromEntries(roles.map((role, index) => [role, contexts[index]]));
    await start(byRole as Record<Role, Context>, releases);
    freeStart();
    log.info("started");
    log.info({ signal: await signal }, "stopping");
    const isStopped = await releasedInTime(releases);
    if (isStopped) log.info("stopped");
    else log.error("the process does not stop, and ends as it is");
    // A connection that was being opened meanwhile, and is no longer in a pool, would keep the process running.
    process.exit(isStopped ? 0 : 1);
  } catch (error) {
    await endFailed(name, error, releases, clean);
  }
}

/**
 * Frees the code that only the start needed, and compiles what runs often from now on (`interpretStart` of
 * apps/runtime-options.ts): a worker's first copy takes 6 MB less.
 */
function freeStart(): void {
  Bun.unsafe.setJITPolicy(1);
  Bun.shrink();
}

/**
 * Ends a process that has failed: the error's code and remedy on standard error, and exit code 1. Resources of the
 * failed step are on no stack, and would keep the process running, while its supervisor waits for its end.
 */
export async function endFailed(
  role: string,
  caught: unknown,
  releases: AsyncDisposableStack,
  clean = scrub,
): Promise<never> {
  console.error(printable(clean(`basetide ${role}: ${failureMessage(caught)}`)));
  if (asControlError(caught).code === "internal") console.error(printable(clean(stackOf(caught))));
  await releasedInTime(releases).catch(() => {});
  process.exit(1);
}

/** Releases the resources of a process that ends. @returns false if that takes longer than its supervisor may wait */
export async function releasedInTime(releases: AsyncDisposableStack): Promise<boolean> {
  const isReleased = releases.disposeAsync().then(() => true);
  return withTimeout(STOP_MS, () => false, isReleased);
}

/** Nothing of ours retries a start, so if the control plane is unreachable, the message says what to check. */
function failureMessage(caught: unknown): string {
  const { code, message } = asControlError(caught);
  if (message !== errorCodes.control_unavailable) return message;
  const cause = caught instanceof BasetideError ? caught.cause : caught;
  const reason = cause instanceof Error ? `: ${cause.message}` : "";
  return `The control-plane database cannot be reached (${code})${reason}. Check that DATABASE_URL is correct, that the server is running, and that it accepts connections from this machine. Then start again.`;
}

/** The stack of the error and its causes; not their fields, which may contain anything. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}

/**
 * From now on an uncaught error ends the process, with a line in the log: nothing may be printed that bypasses the log.
 */
export function endAtFaults({ log }: Pick<Context, "log">): void {
  const end = (error: unknown) => {
    log.fatal({ error: error instanceof Error ? error : new Error(String(error)) }, "crashed");
    process.exit(1);
  };
  process.on("uncaughtException", end).on("unhandledRejection", end);
}

/**
 * Signals within this time of the first one are the same one, ms: a terminal sends Ctrl-C to a whole command, and npx and Bun
 * pass it on.
 */
const SAME_SIGNAL_MS = 1000;

/**
 * Resolves with the first signal that asks the process to stop. A further one ends it at once, with exit code 1.
 *
 * The handlers stay: a signal without one ends the process, even in the moment in which the one before is delivered.
 */
export function stopSignal(): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let from: number | undefined;
  const receive = (name: string) => {
    from ??= performance.now();
    if (performance.now() - from >= SAME_SIGNAL_MS) process.exit(1);
    resolve(name);
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => receive(name));
  return promise;
}
