/**
 * Runs everything in one process: Postgres unless DATABASE_URL names one, then worker, proxy and console, and on
 * request the sandbox with its demo. Each started part is pushed onto the stack of releases, so the parts end in
 * reverse order.
 */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../core/config";
import type { Context } from "../../core/context";
import { THIS_MACHINE } from "../../core/control/placement";
import { BasetideError } from "../../core/errors";
import { listenForMetrics } from "../../core/http/service";
import { createLogger, type Logger } from "../../core/log";
import { POSTGRES_PORT } from "../../core/postgres-url";
import { closeContext, createContext } from "../../core/process";
import { startAll } from "../all/start";
import { connectDemo, type Demo } from "./demo";
import { startEmbeddedPostgres } from "./postgres/embedded-postgres";
import { embeddedRoles } from "./postgres/embedded-roles";
import { type SandboxAddress, startSampleSandbox } from "./sample-sandbox";

const LOOPBACK = "127.0.0.1";
/** The control plane's database on the embedded server; replicas have databases of their own next to it. */
const CONTROL_DATABASE = "basetide";

interface UpOptions {
  /** Start the sandbox and its demo. Their data is stored separately, in `sandbox` of the data folder. */
  sandbox: boolean;
  /** Folder of sample bases for the sandbox. */
  dataFolder: string | undefined;
}

export interface Up {
  config: Config & { databaseUrl: string; host: string };
  /** The file with the embedded server's URL, for the operator's commands. */
  databaseUrlFile: string | undefined;
  consolePort: number;
  proxyPort: number;
  workerPort: number;
  /** Set if METRICS_PORT is. */
  metricsPort: number | undefined;
  /** There is no account yet. */
  isEmpty: boolean;
  sandbox: SandboxAddress | undefined;
  demo: Demo | undefined;
  /** Resolves when a part that everything depends on has ended by itself. */
  failed: Promise<BasetideError>;
}

/** @throws BasetideError `postgres_failed`, `port_taken`, `config_invalid`, `control_unavailable` */
export async function startUp(read: Config, options: UpOptions, releases: AsyncDisposableStack): Promise<Up> {
  const config = options.sandbox ? { ...read, dataDir: join(read.dataDir, "sandbox") } : { ...read };
  const log = createLogger(config.logLevel, "up");
  const database = await openDatabase(config, log, releases);
  const sandbox = options.sandbox
    ? await startSampleSandbox(config, options.dataFolder, releases)
    : undefined;
  if (sandbox) config.upstreams = sandbox.upstreams;
  const full = {
    ...config,
    databaseUrl: database.url,
    replicaUrl: config.replicaUrl ?? database.replicaUrl,
    location: config.location ?? (database.replicaUrl && !config.replicaUrl ? THIS_MACHINE : null),
    // `up` is for one user on one machine; HOST opens it to others.
    host: config.host ?? LOOPBACK,
  };
  const open = (role: string): Context => {
    const ctx = createContext(full, role);
    releases.defer(() => closeContext(ctx));
    return ctx;
  };

  const contexts = { worker: open("worker"), proxy: open("proxy"), console: open("console") };
  const { management, ...ports } = await startAll(contexts, releases);
  const registries = Object.values(contexts).map((ctx) => ctx.metrics);
  const metrics = listenForMetrics(full, registries, contexts.worker.log);
  if (metrics) releases.defer(() => metrics.stop());
  const [accounts] = await management.db`select exists(select from accounts) as some`;
  return {
    config: full,
    databaseUrlFile: database.file,
    ...ports,
    metricsPort: metrics?.port,
    isEmpty: !accounts?.some,
    sandbox,
    demo: sandbox ? await connectDemo(management, sandbox.apiKey) : undefined,
    failed: database.failed,
  };
}

interface OpenDatabase {
  url: string;
  /** The embedded server's admin URL as a cluster. */
  replicaUrl: string | undefined;
  file: string | undefined;
  failed: Promise<BasetideError>;
}

/** Opens the control plane's database: DATABASE_URL's, else one of the embedded server. */
async function openDatabase(
  config: Config,
  log: Logger,
  releases: AsyncDisposableStack,
): Promise<OpenDatabase> {
  if (config.databaseUrl) {
    return {
      url: config.databaseUrl,
      replicaUrl: undefined,
      file: undefined,
      failed: new Promise(() => {}),
    };
  }
  mkdirSync(config.dataDir, { recursive: true });
  const dataDir = join(config.dataDir, "postgres");
  const server = await startEmbeddedPostgres({ dataDir, port: POSTGRES_PORT, log });
  releases.defer(server.stop);
  const { controlUrl: url, clusterUrl } = await embeddedRoles(server.url, CONTROL_DATABASE);
  const file = join(config.dataDir, "database-url");
  writeFileSync(file, `${url}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  const failed = server.exited.then(
    (words) => new BasetideError("postgres_failed", `Embedded Postgres stopped: ${words}`),
  );
  return { url, replicaUrl: clusterUrl, file, failed };
}
