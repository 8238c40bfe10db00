/** A whole service for tests: control plane, workers, and a sandbox as the source, on free ports. */

import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { type SandboxHandle, type SandboxOptions, startSandbox } from "../../apps/sandbox/server";
import { type RunningWorker, startWorker } from "../../apps/worker/start";
import { withTimeout } from "../../core/async";
import { readConfig } from "../../core/config";
import {
  type Base,
  createBase,
  deleteBase,
  getBase,
  listBases,
  type ManagementContext,
  replicaTarget,
} from "../../core/control/bases";
import type { BaseSettings } from "../../core/control/bases/settings";
import { databaseCredentials, ensureDefaultCluster, getDatabase } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";
import type { holdLease } from "../../core/sync/lease";
import { clusterUrl } from "./cluster-url";
import { hostedUrl } from "./hosted-url";
import { until } from "./poll";
import { testAccount } from "./test-account";

/** The longest stop of a worker on a busy machine, ms. */
const STOPPED_MS = 60_000;

/** The source of a fleet's bases, and a key that can read them. */
export interface FleetSource {
  url: string;
  key: string;
}

export interface FleetOptions<Source extends FleetSource = SandboxHandle> {
  /** A source that runs already; otherwise a sandbox is started in this process. */
  source?: Source;
  /** An empty database for the control plane; a new one unless given. */
  databaseUrl?: string;
  sandbox?: SandboxOptions;
  /** Environment of all processes, overrides the defaults. */
  env?: Record<string, string>;
  /** Workers that are started at once; default 1. */
  workers?: number;
  /** Leaves the bases when the fleet ends, because their servers end too. */
  leavesBases?: boolean;
}

export interface Fleet<Source extends FleetSource = SandboxHandle> {
  ctx: ManagementContext;
  sandbox: Source;
  workers: RunningWorker[];
  /** @param lease holds a lease of a base; the sync engine's unless given */
  addWorker(lease?: typeof holdLease): Promise<RunningWorker>;
  /** Connects a base of the sandbox, without live mode unless the settings enable it. */
  /** @param apiKey the sandbox's own unless given; all of its bases share one user's limit */
  connect(sourceBaseId: string, settings?: Partial<BaseSettings>, apiKey?: string): Promise<Base>;
  /** Resolves with the base when a sync that started after this call has completed. */
  synced(baseId: string, timeoutMs?: number): Promise<Base>;
  /** Connections to the replica: the owner's, and the customer's. */
  owner(base: Base): Promise<postgres.Sql>;
  reader(base: Base): Promise<postgres.Sql>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startFleet<Source extends FleetSource = SandboxHandle>(
  options: FleetOptions<Source> = {},
): Promise<Fleet<Source>> {
  const releases = new AsyncDisposableStack();
  const databaseUrl = options.databaseUrl ?? (await testDatabase(releases));
  const sandbox =
    options.source ?? (releases.use(await startSandbox({ port: 0, ...options.sandbox })) as FleetSource);
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    REPLICA_URL: clusterUrl(),
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: join(tmpdir(), "basetide-unused"),
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? "silent",
    UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
    // Without an address of its own, no console receives notifications.
    ...(!options.env?.CONSOLE_URL && { LIVE_PINGS: "off" }),
    ...options.env,
  });
  const open = (role: string) => {
    const ctx = createContext(config, role);
    releases.defer(() => closeContext(ctx));
    return ctx;
  };
  const plain = open("console");
  await migrateControl(databaseUrl, plain.log);
  const queue = await openQueue(plain, databaseUrl, { isWorker: false });
  releases.defer(() => queue.close());
  const ctx: ManagementContext = { ...plain, queue, platforms: platforms(config) };
  await ensureDefaultCluster(ctx);
  if (!options.leavesBases)
    releases.defer(async () => {
      for (const base of await listBases(ctx.db)) await deleteBase(ctx, base);
    });
  const account = await testAccount(ctx.db, { email: "fleet@example.org" });
  const workers: RunningWorker[] = [];
  const addWorker = async (lease?: typeof holdLease) => {
    const started = await startWorker(open("worker"), lease ? { port: 0, lease } : { port: 0 });
    let stopping: Promise<void> | undefined;
    const worker = { ...started, stop: () => (stopping ??= hasStopped(started)) };
    // One that does not stop fails the test that stops it, or else this.
    releases.defer(async () => {
      await (stopping ? stopping.catch(() => {}) : worker.stop());
    });
    workers.push(worker);
    return worker;
  };
  const pools = new Map<string, postgres.Sql>();
  // One pool for each URL: a customer's role has few connections, and a polling test asks for its pool each time.
  const pool = (url: string) => {
    const known = pools.get(url);
    if (known) return known;
    const sql = postgres(url, { max: 4, onnotice: () => {} });
    pools.set(url, sql);
    releases.defer(() => sql.end({ timeout: 1 }));
    return sql;
  };
  for (let index = 0; index < (options.workers ?? 1); index++) await addWorker();
  return {
    ctx,
    sandbox: sandbox as Source,
    workers,
    addWorker,
    connect: (sourceBaseId, settings, apiKey = sandbox.key) =>
      createBase(ctx, account.id, {
        platform: "airtable",
        apiKey,
        sourceBaseId,
        settings: { live: false, ...settings },
      }),
    async synced(baseId, timeoutMs = 60_000) {
      const from = new Date();
      return until(
        async () => {
          const base = await getBase(ctx.db, baseId);
          return base.sync && base.sync.startedAt > from ? base : undefined;
        },
        { timeoutMs, what: `a sync of ${baseId} that starts from now on to complete` },
      );
    },
    owner: async (base) => pool(hostedUrl((await replicaTarget(ctx, base)).url)),
    reader: async (base) =>
      pool((await databaseCredentials(ctx, await getDatabase(ctx.db, base.database.id))).url),
    [Symbol.asyncDispose]: () => releases.disposeAsync(),
  };
}

/** @throws Error if the worker does not stop, which says what it holds */
async function hasStopped({ worker, stop }: RunningWorker): Promise<void> {
  const late = () => {
    throw new Error(`a worker has not stopped within ${STOPPED_MS} ms; it holds ${worker.busy} bases`);
  };
  await withTimeout(STOPPED_MS, late, stop());
}

/** Only vitest knows the test database; a bench starts its own. */
async function testDatabase(releases: AsyncDisposableStack): Promise<string> {
  const { controlDatabase } = await import("./database");
  return releases.use(await controlDatabase()).url;
}
