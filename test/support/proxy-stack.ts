/**
 * A proxy with everything that it needs: a control plane, a sandbox as the source, replicas on the test server, and
 * syncs that run when a test starts them.
 */

import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { inject } from "vitest";
import { type RunningProxy, startProxy } from "../../apps/proxy/start";
import { type SandboxHandle, startSandbox } from "../../apps/sandbox/server";
import { readConfig } from "../../core/config";
import type { Context } from "../../core/context";
import {
  type Base,
  createBase,
  deleteBase,
  getBase,
  listBases,
  type ManagementContext,
  replicaTarget,
} from "../../core/control/bases";
import { databaseCredentials, ensureDefaultCluster, getDatabase } from "../../core/control/placement";
import { createSyncHost } from "../../core/control/sync-host";
import { CallCounter, createRateLimiter } from "../../core/limiter";
import { closeContext, createContext } from "../../core/process";
import { platforms } from "../../core/source";
import { type BaseCaches, holdLease, syncMetrics } from "../../core/sync/lease";
import { BudgetWatch } from "../../core/sync/pacing";
import { type CuttableProxy, cuttableProxy } from "./cuttable-proxy";
import { controlDatabase } from "./database";
import { hostedUrl } from "./hosted-url";
import { until } from "./poll";
import { dumpTable, readerOf } from "./replica";
import { testAccount } from "./test-account";

export interface Replicated {
  base: Base;
  /** The customer's connection. */
  reader: postgres.Sql;
  /** The owner's URL; of a customer's server, as the customer gave it. */
  ownerUrl: string;
  rows(table: string): Promise<Record<string, unknown>[]>;
  /** Runs syncs until one that began after this call has completed. */
  sync(by?: BaseCaches): Promise<void>;
}

export interface ProxyStack extends AsyncDisposable {
  ctx: Context;
  sandbox: SandboxHandle;
  proxy: RunningProxy;
  /** `http://localhost:port/api.airtable.com` */
  endpoint: string;
  contentEndpoint: string;
  managed: ManagementContext;
  /** The proxy through which proxies reach the control plane. */
  controlFaultProxy: CuttableProxy;
  /**
   * Connects a base of the sandbox, without live mode, for an account of its own; with the sandbox's key unless given.
   *
   * @param own URL of a database that the customer hosts
   */
  connect(sourceBaseId: string, apiKey?: string, own?: string): Promise<Replicated>;
  /** Marks a base as connected without creating a replica, for requests that do not need one. */
  connectUnchecked(sourceBaseId: string): Promise<void>;
  /** Runs `work` as the owner of a replica. */
  withOwner(replicated: Replicated, work: (sql: postgres.Sql) => Promise<unknown>): Promise<void>;
  /** Starts another proxy, as if in another process. */
  startAnother(): Promise<{ endpoint: string } & AsyncDisposable>;
}

/** @param env set in addition to DATABASE_URL and UPSTREAMS */
export async function proxyStack(env: Record<string, string> = {}): Promise<ProxyStack> {
  const releases = new AsyncDisposableStack();
  const sandbox = releases.use(await startSandbox({ settings: { rateLimitOff: true } }));
  const database = releases.use(await controlDatabase());
  const config = readConfig({
    DATABASE_URL: database.url,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: join(tmpdir(), "basetide-unused"),
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? "silent",
    UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
    ...env,
  });
  const context = (role: string, of = config) => {
    const made = createContext(of, role);
    releases.defer(() => closeContext(made));
    return made;
  };
  const ctx = context("test");
  await ensureDefaultCluster(ctx);
  releases.defer(async () => {
    for (const base of await listBases(ctx.db)) await deleteBase(ctx, base);
  });
  const queue = { requestSync: async () => {} };
  const callCounter = new CallCounter(ctx);
  const host = createSyncHost(ctx);
  const managed = {
    ...ctx,
    queue,
    platforms: platforms(config),
    limiter: createRateLimiter(ctx),
    syncMetrics: syncMetrics(ctx.metrics),
    host,
    budgetWatch: new BudgetWatch({ log: ctx.log, host, callCounter }),
    callCounter,
  };
  const controlFaultProxy = releases.use(await cuttableProxy(database.url));
  const proxyContext = () => context("proxy", { ...config, databaseUrl: controlFaultProxy.url });
  const proxy = await startProxy(proxyContext(), { port: 0 });
  releases.defer(() => proxy.stop());
  let accounts = 0;

  async function connect(sourceBaseId: string, apiKey = sandbox.key, own?: string): Promise<Replicated> {
    const account = await testAccount(ctx.db, { email: `a${++accounts}@example.com` });
    const base = await createBase(managed, account.id, {
      platform: "airtable",
      apiKey,
      sourceBaseId,
      settings: { turbo: true, live: false },
      ...(own === undefined ? {} : { destination: { kind: "external", url: own } }),
    });
    const { url } =
      own === undefined
        ? await databaseCredentials(ctx, await getDatabase(ctx.db, base.database.id))
        : { url: own };
    const reader = releases.use(readerOf(url));
    const caches: BaseCaches = new Map();
    return {
      base,
      reader,
      ownerUrl: own ?? hostedUrl((await replicaTarget(ctx, base)).url),
      rows: async (table) => (await dumpTable(reader, table)) as Record<string, unknown>[],
      async sync(by = caches) {
        const from = Date.now();
        const stop = new AbortController();
        const lease = holdLease(managed, base.id, by, {
          stop: stop.signal,
          kill: new AbortController().signal,
        });
        await until(async () => ((await getBase(ctx.db, base.id)).sync?.startedAt.getTime() ?? 0) >= from, {
          what: "a sync has completed",
        }).finally(() => stop.abort());
        await lease;
      },
    };
  }

  const at = (port: number, host: string) => `http://localhost:${port}/${host}.airtable.com`;
  return {
    ctx,
    sandbox,
    proxy,
    endpoint: at(proxy.port, "api"),
    contentEndpoint: at(proxy.port, "content"),
    managed,
    controlFaultProxy,
    connect,
    async connectUnchecked(sourceBaseId) {
      const account = await testAccount(ctx.db, { email: `a${++accounts}@example.com` });
      const names = { account: account.id, database: `unmade${accounts}`, base: `base_unmade${accounts}` };
      await ctx.db`
        insert into databases (id, account_id, name, role_name, encrypted_url, external_host, external_port)
        values (${names.database}, ${names.account}, ${names.database}, 'nobody', 'x', 'nowhere', 1)`;
      await ctx.db`
        insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name)
        values (${names.base}, ${names.account}, 'airtable', ${sourceBaseId}, 'Unmade', 'x', ${names.database}, 'public')`;
      releases.defer(async () => {
        await ctx.db`delete from bases where id = ${names.base}`;
        await ctx.db`delete from databases where id = ${names.database}`;
      });
    },
    async withOwner({ ownerUrl }, work) {
      const sql = postgres(ownerUrl, { max: 1, onnotice: () => {} });
      try {
        await work(sql);
      } finally {
        await sql.end();
      }
    },
    async startAnother() {
      const another = await startProxy(proxyContext(), { port: 0 });
      return { endpoint: at(another.port, "api"), [Symbol.asyncDispose]: () => another.stop() };
    },
    [Symbol.asyncDispose]: () => releases.disposeAsync(),
  };
}

/** The sum of a metric's values, from the proxy's metrics page. */
export async function metricOf(stack: ProxyStack, name: string): Promise<number> {
  const text = await (await fetch(`http://localhost:${stack.proxy.port}/metrics`)).text();
  const values = text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}
