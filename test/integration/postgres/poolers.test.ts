/**
 * Common servers: PgBouncer with its default settings, and TLS terminators in front of a server. Sessions keep their
 * settings, or the URL is refused with the alternative.
 */
import { networkInterfaces } from "node:os";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inspectCluster, prepareDestination } from "../../../core/control/placement";
import { inspect } from "../../../core/control/placement/external-database";
import { externalServer } from "../../../core/control/placement/external-url";
import { migrateControl } from "../../../core/control/setup";
import { gateway } from "../../../core/external";
import { createAuthority } from "../../../core/http";
import { createLogger } from "../../../core/log";
import { connectControl, connectPg } from "../../../core/postgres";
import { findPooling } from "../../../core/postgres/pooling";
import { openQueue } from "../../../core/queue";
import { connectReplica, installReplica, openReplica, takeReadVersion } from "../../../core/replica";
import { type TestControl, testControl } from "../../support/control-support";
import { hostilePostgres } from "../../support/hostile-postgres";
import { until } from "../../support/poll";
import { HAS_PGBOUNCER, type PgBouncer, pgBouncer } from "../../support/servers/pgbouncer";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { tlsRelay } from "../../support/servers/tls-relay";

const log = createLogger("error", "test");
const authority = createAuthority("A test's");
const certificate = authority.issue(["localhost", "127.0.0.1"]);

let control: TestControl;
let server: PostgresServer;
let session: PgBouncer;
let transaction: PgBouncer;

beforeAll(async () => {
  control = await testControl();
  server = await postgresServer({ version: "18", tls: certificate });
  await server.role("app");
  await server.run([
    "create database control owner app",
    "create database customer owner app",
    "create database other owner app",
  ]);
  if (!HAS_PGBOUNCER) return;
  session = await pgBouncer(server, { mode: "session", tls: certificate });
  transaction = await pgBouncer(server, { mode: "transaction" });
}, 120_000);
afterAll(async () => {
  gateway.stop();
  await session?.[Symbol.asyncDispose]();
  await transaction?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
  await control?.[Symbol.asyncDispose]();
});

const withPooler = test.skipIf(!HAS_PGBOUNCER);

/** What remains of a database's sessions on the server: session locks, and settings. */
async function leftBehind(database: string) {
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  try {
    return await sql<{ locks: number }[]>`
      select count(*)::int as locks from pg_locks join pg_database as d on d.oid = database
      where locktype = 'advisory' and datname = ${database}`;
  } finally {
    await sql.end();
  }
}

test("a direct connection is recognized, and costs one more round trip", async () => {
  expect(await findPooling(server.as("app", "other"))).toBe("none");
});

withPooler("a pooler in session mode is known, also where it has room for one connection only", async () => {
  expect(await findPooling(session.over(server.as("app", "other")))).toBe("session");
  await using small = await pgBouncer(server, { mode: "session", settings: { default_pool_size: "1" } });
  expect(await findPooling(small.over(server.as("app", "other")))).toBe("full");
});

withPooler(
  "a pooler in transaction mode is known, busy or not, and no setting of ours stays on its connections",
  async () => {
    const url = transaction.over(server.as("app", "other"));
    expect(await findPooling(url)).toBe("transaction");
    expect(await findPooling(externalServer(url, "loopback"))).toBe("transaction");
    const others = postgres(url, { max: 4, fetch_types: false, prepare: false, onnotice: () => {} });
    try {
      let isOver = false;
      const busy = Array.from({ length: 4 }, async () => {
        while (!isOver) await others`select pg_sleep(0.001)`;
      });
      expect(await findPooling(url)).toBe("transaction");
      isOver = true;
      await Promise.all(busy);
      await inspect(control.ctx, url, "base");
      await inspectCluster(url);
      const seen = await Promise.all(
        Array.from(
          { length: 8 },
          () =>
            others`select current_setting('lock_timeout') as lock, current_setting('search_path') as path`,
        ),
      );
      for (const [row] of seen) expect(row).toEqual({ lock: "0", path: '"$user", public' });
    } finally {
      await others.end();
    }
  },
);

withPooler(
  "behind PgBouncer in session mode, as it is installed, both drivers get sessions with our settings",
  async () => {
    const url = session.over(server.as("app", "other"));
    const sql = connectReplica(url);
    try {
      const read = () => sql`
      select current_setting('search_path') as path, current_setting('lock_timeout') as lock,
        current_setting('default_transaction_isolation') as isolation`;
      const rows = await Promise.all(Array.from({ length: 6 }, read));
      for (const [row] of rows)
        expect(row).toEqual({ path: "pg_catalog, pg_temp", lock: "2s", isolation: "read committed" });
    } finally {
      await sql.end();
    }
    const client = await connectPg(
      session.over(`${server.as("app", "other")}?options=-c%20work_mem%3D7MB&channel_binding=require`),
      "a test",
    );
    try {
      const { rows } = await client.query("select current_setting('work_mem') as memory");
      expect(rows).toEqual([{ memory: "7MB" }]);
    } finally {
      await client.end();
    }
  },
);

withPooler(
  "a control plane behind PgBouncer in session mode migrates twice, queues and listens",
  { timeout: 120_000 },
  async () => {
    const url = session.over(server.as("app", "control"));
    expect((await migrateControl(url, log)).length).toBeGreaterThan(0);
    expect(await migrateControl(url, log)).toEqual([]);
    const db = connectControl(url);
    try {
      const queue = await openQueue({ db, log }, url, { isWorker: false });
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      await queue.onRequest(resolve);
      await db.notify("basetide_sync_queued", "");
      await woken;
      await queue.close();
    } finally {
      await db.end({ timeout: 1 });
    }
    expect(await leftBehind("control")).toEqual([{ locks: 0 }]);
  },
);

withPooler(
  "a control plane behind a pooler in transaction mode is refused before it leaves a lock there",
  async () => {
    const url = transaction.over(server.as("app", "control"));
    for (let start = 0; start < 2; start++) {
      await expect(migrateControl(url, log)).rejects.toMatchObject({
        code: "config_invalid",
        message: expect.stringMatching(/^DATABASE_URL: .*transaction mode.*pool_mode = session/),
      });
    }
    expect(await leftBehind("control")).toEqual([{ locks: 0 }]);
    const { results } = await inspectCluster(transaction.over(server.url));
    expect(results.find(({ message }) => message.includes("transaction mode"))).toMatchObject({
      severity: "problem",
    });
  },
);

withPooler(
  "a destination behind PgBouncer is inspected as it will be used: session mode works, transaction mode has its remedy",
  async () => {
    const url = session.over(server.as("app", "customer"));
    const { checks, report } = await inspect(control.ctx, url, "base");
    expect(checks.filter(({ severity }) => severity === "problem")).toEqual([]);
    expect(checks.map(({ check }) => check)).toEqual([
      ...["address", "connection", "pooler", "encryption", "latency", "rights", "schema"],
    ]);
    expect(report).toMatchObject({ pooling: "session", role: "app", majorVersion: 18, platform: undefined });
    expect(checks.find(({ check }) => check === "pooler")).toMatchObject({ severity: "ok" });
    const place = externalServer(url, "loopback");
    await installReplica(place, { schema: "base", role: "app" });
    const replica = openReplica({ url: place, schema: "base" });
    const readVersions = await Promise.all(Array.from({ length: 6 }, () => takeReadVersion(replica)));
    expect(new Set(readVersions).size).toBe(6);
    await replica.close();

    const refused = await inspect(control.ctx, transaction.over(server.as("app", "customer")), "base");
    expect(refused.checks.find(({ severity }) => severity === "problem")).toMatchObject({
      check: "pooler",
      remedy: expect.stringContaining("pool_mode = session"),
    });
    const external = {
      kind: "external",
      url: transaction.over(server.as("app", "customer")),
      schema: "base",
    } as const;
    const account = await control.addAccount("pooled@example.org");
    await expect(prepareDestination(control.ctx, account.id, external)).rejects.toMatchObject({
      code: "destination_invalid",
      message: expect.stringContaining("transaction mode"),
    });
  },
);

test("encryption is what our own socket has: behind a TLS terminator it is encrypted, for every driver", async () => {
  await using relay = await tlsRelay(server, { certificate, aliases: { "postgres.abc": "app" } });
  const url = relay.over(server.as("app", "customer"));
  const { checks, report } = await inspect(control.ctx, url, "relayed");
  expect(checks.find(({ check }) => check === "encryption")).toMatchObject({
    severity: "ok",
    message: expect.stringMatching(/^Encrypted with TLSv1\.\d; TLS ends at a proxy/),
  });
  expect(report).toMatchObject({ role: "app", seesTls: false, link: { family: "IPv4" } });
  expect(checks.filter(({ severity }) => severity === "problem")).toEqual([]);
  const client = await connectPg(url, "a test");
  await client.end();
  const cluster = await inspectCluster(relay.over(server.url));
  expect(cluster.summary).toMatch(/TLSv1\.\d/);
});

test("a database that was found to accept TLS is never connected to without it again", async () => {
  await using relay = await tlsRelay(server, { certificate });
  const account = await control.addAccount("tls-kept@example.org");
  const destination = {
    kind: "external",
    url: relay.over(server.as("app", "other"), "prefer"),
    schema: "kept",
  } as const;
  const { databaseId } = await prepareDestination(control.ctx, account.id, destination);
  const { databaseAdminUrl, getDatabase } = await import("../../../core/control/placement/databases");
  const kept = await databaseAdminUrl(control.ctx, await getDatabase(control.ctx.db, databaseId));
  expect(kept).toMatchObject({ address: { sslMode: "require" } });
});

withPooler(
  "a plain connection to a pooler that speaks TLS to the server is not called encrypted",
  async () => {
    await using pooler = await pgBouncer(server, {
      mode: "session",
      settings: { server_tls_sslmode: "require" },
    });
    const { checks, report } = await inspect(control.ctx, pooler.over(server.as("app", "customer")), "plain");
    expect(report).toMatchObject({ seesTls: true });
    expect(checks.find(({ check }) => check === "encryption")).toMatchObject({
      severity: "warning",
      message: "The connection is not encrypted",
    });
  },
);

const HAS_IPV6 = Object.values(networkInterfaces())
  .flat()
  .some((one) => one?.address === "::1");

test.skipIf(!HAS_IPV6)(
  "a server at an IPv6 literal is reached by both drivers and through the gateway",
  async () => {
    await using six = await postgresServer({
      version: "18",
      settings: { listen_addresses: "127.0.0.1, ::1" },
    });
    const url = Object.assign(new URL(six.url), { hostname: "[::1]" }).href;
    const client = await connectPg(url, "a test");
    await client.end();
    const { summary } = await inspectCluster(url);
    expect(summary).toContain("IPv6");
    const { report } = await inspect(control.ctx, url, "base");
    expect(report).toMatchObject({ link: { address: "::1", family: "IPv6" }, pooling: "none" });
  },
);

test("a customer's server that hangs after the login is disconnected, with its connections", {
  timeout: 60_000,
}, async () => {
  await using hostile = await hostilePostgres();
  hostile.behave("hangs-after-login");
  const { checks } = await inspect(control.ctx, hostile.url("silent"), "base");
  expect(checks).toMatchObject([{ severity: "problem", message: expect.stringContaining("takes too long") }]);
  await until(() => hostile.open === 0, { what: "no connection is left open" });
});
