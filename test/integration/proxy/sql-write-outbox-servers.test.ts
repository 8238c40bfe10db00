/**
 * Queued SQL writes on each version of Postgres, without dblink or a superuser, on customers' servers, and through PgBouncer. The
 * tests mostly wait, each with a service of its own.
 */
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { deleteBase, getBase, replicaTarget, updateSettings } from "../../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../../core/control/placement";
import { grantWrites, openOutbox } from "../../../core/replica";
import { errorOf } from "../../support/error-of";
import { faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";
import { proxyStack } from "../../support/proxy-stack";
import { HAS_PGBOUNCER, pgBouncer } from "../../support/servers/pgbouncer";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";
import { writableTasks, writeStack } from "../../support/sql-writes";

/** Of a test next to the others. */
const TEST_MS = 60_000;
const VERSIONS = process.env.WRITES === "all" ? POSTGRES_VERSIONS : (["15", "18"] as const);
/** In each direction. */
const DELAY_MS = 50;
const TASKS = "tblTasks000000001";

type Scene = Awaited<ReturnType<typeof writableTasks>>;

/** Writes through four sessions of PgBouncer, and waits until all is made. In transaction mode, they share two of the server. */
async function writeThroughPooler(
  server: PostgresServer,
  mode: "session" | "transaction",
  url: string,
  at: Scene,
): Promise<void> {
  const settings = { default_pool_size: mode === "session" ? "4" : "2" };
  await using pooler = await pgBouncer(server, { mode, settings });
  const sessions = Array.from({ length: 4 }, () =>
    postgres(pooler.over(url), { max: 1, prepare: false, onnotice: () => {} }),
  );
  const before = at.inSource().length;
  await Promise.all(
    sessions.map((session, nth) =>
      session.begin("read write", async (tx) => {
        await tx`insert into write.tasks (name) select ${`S${nth} `} || n from generate_series(1, 12) as n`;
      }),
    ),
  );
  await until(() => at.inSource().length === before + 48, { what: "Airtable has all rows" });
  await Promise.all(sessions.map((session) => session.end()));
}

test.concurrent.for(VERSIONS)(
  "on Postgres %s, without dblink or a superuser, and through PgBouncer",
  { timeout: TEST_MS },
  async (version, { onTestFinished: onFinished }) => {
    await using server = await postgresServer({ version });
    await server.role("plain", "createdb createrole");
    await using stack = await proxyStack({ REPLICA_URL: server.as("plain"), UPSTREAM_TIMEOUT_MS: "1000" });
    const at = await writableTasks(stack, 0, { isQueued: true, onFinished });
    const url = await writerUrl();
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    await sql.begin(
      "isolation level serializable read write",
      (tx) => tx`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 12) as n`,
    );
    await until(() => at.inSource().length === 12, { what: "Airtable has all rows" });
    const admin = postgres((await replicaTarget(stack.ctx, at.base)).url as string, { max: 1 });
    expect(await admin`select extname from pg_extension where extname = 'dblink'`).toEqual([]);
    await admin.end();
    if (HAS_PGBOUNCER) {
      await writeThroughPooler(server, "transaction", url, at);
      await writeThroughPooler(server, "session", url, at);
    }
    await until(async () => (await sql`select from write.log where state <> 'applied'`).length === 0, {
      what: "the log has the results",
    });
    await sql.end();

    /** Of a SQL user; before Postgres 16 there are none, and a role of the customer's is granted the same. */
    async function writerUrl(): Promise<string> {
      if (version !== "15") return (await at.writer()).url;
      const database = await getDatabase(stack.ctx.db, at.base.database.id);
      const target = await replicaTarget(stack.ctx, at.base);
      await grantWrites(target, { role: database.role, mode: "at_commit", tables: [TASKS] });
      await server.run([`alter role ${database.role} set default_transaction_read_only = off`]);
      return (await databaseCredentials(stack.ctx, database)).url;
    }
  },
);

test.concurrent("on a customer's server, whose notifications pass the gateway", { timeout: TEST_MS }, async ({
  onTestFinished: onFinished,
}) => {
  await using server = await postgresServer({ version: "18" });
  await server.role("owner", "createrole");
  await server.role("app");
  await server.run(["create database shop owner owner"]);
  await using stack = await proxyStack({ UPSTREAM_TIMEOUT_MS: "1000" });
  const at = await writableTasks(stack, 1, { isQueued: true, own: server.as("owner", "shop"), onFinished });
  const { schema } = at.base.database;
  const write = schema === "public" ? "write" : `${schema}_write`;
  await server.run(
    [
      `grant usage on schema ${write} to app`,
      `grant select, insert, update, delete on ${write}.tasks to app`,
      `grant select on ${write}.log to app`,
    ],
    "shop",
  );
  const sql = postgres(server.as("app", "shop"), { max: 1, onnotice: () => {} });
  const admin = postgres(server.as("postgres", "shop"), { max: 1 });
  /** Nothing has asked for a while, longer than between two reads while something waits. */
  const isAtRest = async () => {
    const [row] = await admin<{ rests: boolean | null }[]>`
      select max(state_change) < now() - interval '3 s' as rests from pg_stat_activity
      where usename = 'owner' and query like '%outbox%'`;
    return row!.rests === true;
  };
  // The first one may be found when the outbox is opened. The second is heard: at rest, it is read once a minute.
  for (const name of ["First", "Second"]) {
    await sql.unsafe(`insert into ${write}.tasks (name) values ('${name}')`);
    await until(() => at.inSource().some(({ Name }) => Name === name), { what: `Airtable has ${name}` });
    await until(
      async () => (await sql.unsafe(`select from ${write}.log where state <> 'applied'`)).length === 0,
      {
        what: "the log has the result",
      },
    );
    await until(isAtRest, { what: "the outbox is at rest" });
  }
  await deleteBase(stack.ctx, at.base);
  // The tables stay. Nothing would make what is written.
  expect(await admin.unsafe(`select from ${schema}.tasks`)).toHaveLength(3);
  expect((await errorOf(sql.unsafe(`insert into ${write}.tasks (name) values ('Third')`))).code).toBe(
    "42P01",
  );
  await Promise.all([admin.end(), sql.end()]);
});

test.concurrent("outboxes of a server share a part of its connections, in turns", {
  timeout: TEST_MS,
}, async () => {
  await using server = await postgresServer({ version: "18", settings: { max_connections: "20" } });
  const stop = new AbortController();
  const open = () => openOutbox({ url: server.url, schema: "public" }, () => {}, stop.signal);
  // A tenth.
  const opened = [await open(), await open()];
  const third = await open();
  await Promise.race(opened.map(({ lost }) => lost));
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  const [row] =
    await sql`select count(*)::int as n from pg_stat_activity where application_name = 'basetide'`;
  expect(row).toEqual({ n: 2 });
  stop.abort();
  await third.lost;
  await sql.end();
});

test.concurrent("the error of a server that cannot connect back names queued writes, which then work", {
  timeout: TEST_MS,
}, async ({ onTestFinished: onFinished }) => {
  await using server = await postgresServer({ version: "18" });
  await server.role("plain", "createdb createrole");
  await using stack = await writeStack({ REPLICA_URL: server.as("plain") });
  const error = await writableTasks(stack, 0, { onFinished }).then(
    () => undefined,
    (thrown: { message: string }) => thrown,
  );
  expect(error?.message).toContain("turn on `sql_writes_queued`");
  const [{ id } = { id: "" }] = await stack.ctx.db<{ id: string }[]>`select id from bases`;
  const changed = await updateSettings(stack.managed, await getBase(stack.ctx.db, id), {
    sqlWrites: true,
    sqlWritesQueued: true,
  });
  expect(changed.settings).toMatchObject({ sqlWrites: true, sqlWritesQueued: true });
});

test.concurrent("where the server cannot connect back, writes that are queued stay queued", {
  timeout: TEST_MS,
}, async ({ onTestFinished: onFinished }) => {
  await using stack = await writeStack({ WRITE_HOST: "nowhere.invalid" });
  const at = await writableTasks(stack, 0, { isQueued: true, onFinished });
  const sql = await at.writer();
  const base = () => getBase(stack.ctx.db, at.base.id);
  expect(
    await errorOf(updateSettings(stack.managed, await base(), { sqlWritesQueued: false })),
  ).toMatchObject({ code: "conflict" });
  expect((await base()).settings.sqlWritesQueued).toBe(true);
  await sql`insert into write.tasks (name) values ('Queued')`;
  await until(() => at.inSource().length === 1, { what: "it is made", timeoutMs: 20_000 });
});

test.concurrent("behind round trips of 100 ms and lost connections, transactions are made in their order, each once", async ({
  onTestFinished: onFinished,
}) => {
  const { hostname, port } = new URL(inject("clusterUrl"));
  await using line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
  await using stack = await proxyStack({
    REPLICA_URL: line.over(inject("clusterUrl")),
    UPSTREAM_TIMEOUT_MS: "5000",
  });
  const at = await writableTasks(stack, 0, { isQueued: true, onFinished });
  const { url } = await at.writer();
  // The client is near its server, and Basetide is not.
  const near = Object.assign(new URL(url), { hostname, port }).href;
  await using releases = new AsyncDisposableStack();
  const sql = postgres(near, { max: 1, onnotice: () => {} });
  releases.defer(() => sql.end());
  line.delayMs = DELAY_MS;
  const open = async (states: string[]) =>
    (await sql`select from write.log where state = any (${states})`).length;
  const wanted: string[] = [];
  const faults = [() => {}, () => line.reset(), () => line.blackhole()];
  for (const [part, fault] of faults.entries()) {
    for (let nth = 0; nth < 5; nth++) {
      const name = `Row ${part} ${nth}`;
      await sql`insert into write.tasks (name) values (${name})`;
      wanted.push(name);
      if (nth === 2) await fault();
    }
    await until(async () => (await open(["queued", "sent"])) === 0, {
      what: "the transactions have results",
      timeoutMs: 90_000,
    });
  }
  expect(at.inSource().map(({ Name }) => Name)).toEqual(wanted);
  expect(await sql`select from write.log where state = 'applied'`).toHaveLength(wanted.length);
  await until(async () => (await sql`select from tasks`).length === wanted.length, {
    what: "SQL shows them",
  });
}, 300_000);
