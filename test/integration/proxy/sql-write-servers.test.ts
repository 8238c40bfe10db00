/**
 * SQL writes on each version of Postgres, with a cluster's admin that is not a superuser, and through PgBouncer. The tests mostly
 * wait, each with a service of its own.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, inject, test } from "vitest";
import { getBase, replicaTarget, updateSettings } from "../../../core/control/bases";
import { databaseCredentials, getDatabase } from "../../../core/control/placement";
import { grantWrites, prepareCluster } from "../../../core/replica";
import { dblinkSetup } from "../../../core/replica/write-door";
import { createAuthority } from "../../support/certificates";
import { errorOf } from "../../support/error-of";
import { faultProxy } from "../../support/fault-proxy";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { scratchFolder } from "../../support/scratch";
import { HAS_PGBOUNCER, pgBouncer } from "../../support/servers/pgbouncer";
import { PASSWORD, postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";
import { writableTasks, writeStack } from "../../support/sql-writes";

/** Of a test next to the others. */
const TEST_MS = 60_000;
const VERSIONS = process.env.WRITES === "all" ? POSTGRES_VERSIONS : (["15", "17"] as const);
/** In each direction. */
const DELAY_MS = 50;
const TASKS = "tblTasks000000001";

test.concurrent.for(VERSIONS)(
  "on Postgres %s, without a superuser",
  { timeout: TEST_MS },
  async (version, { onTestFinished: onFinished }) => {
    await using server = await postgresServer({ version });
    await prepareCluster(server.url, { role: "cluster", password: PASSWORD, database: "postgres" });
    await using stack = await writeStack({ REPLICA_URL: server.as("cluster") });
    const at = await writableTasks(stack, 0, { onFinished });
    const url = await writerUrl();
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    await sql`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 12) as n`;
    expect(at.inSource()).toHaveLength(12);
    expect((await errorOf(sql`update write.tasks set status = 'None'`)).code).toBe("23514");
    await sql`set basetide.writes = 'at_once'`;
    expect(await sql`insert into write.tasks (name) values ('Once') returning loud`).toEqual([
      { loud: "ONCE" },
    ]);
    expect((await errorOf(sql`select basetide_dblink.dblink_connect('x', 'host=x')`)).code).toBe("42501");
    await sql.end();
    if (!HAS_PGBOUNCER) return;
    await using whole = await pgBouncer(server, { mode: "session" });
    const session = postgres(whole.over(url), { max: 1, onnotice: () => {} });
    await session`set basetide.writes = 'at_once'`;
    expect(await session`insert into write.tasks (name) values ('Session') returning loud`).toEqual([
      { loud: "SESSION" },
    ]);
    await session.end();
    await using pooler = await pgBouncer(server, {
      mode: "transaction",
      settings: { default_pool_size: "2" },
    });
    const sessions = Array.from({ length: 4 }, () =>
      postgres(pooler.over(url), { max: 1, prepare: false, onnotice: () => {} }),
    );
    await Promise.all(
      sessions.map((session, nth) =>
        session.begin("read write", async (tx) => {
          await tx`insert into write.tasks (name) select ${`S${nth} `} || n from generate_series(1, 12) as n`;
        }),
      ),
    );
    await Promise.all(sessions.map((session) => session.end()));
    expect(new Set(at.inSource().map(({ Name }) => Name)).size).toBe(12 + 1 + 1 + 48);

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

test.concurrent("with a certificate, the endpoint is reached over TLS only", { timeout: TEST_MS }, async ({
  onTestFinished: onFinished,
}) => {
  const authority = createAuthority("Basetide tests");
  const { certificate, key } = authority.issue(["localhost"]);
  const folder = scratchFolder("write-tls");
  writeFileSync(join(folder, "cert.pem"), certificate);
  writeFileSync(join(folder, "key.pem"), key);
  await using stack = await writeStack({
    WRITE_TLS_CERTIFICATE: join(folder, "cert.pem"),
    WRITE_TLS_KEY: join(folder, "key.pem"),
  });
  const at = await writableTasks(stack, 0, { onFinished });
  const sql = await at.writer();
  await sql`insert into write.tasks (name) select 'Row ' || n from generate_series(1, 12) as n`;
  expect(at.inSource()).toHaveLength(12);
  const plain = postgres(`postgres://bas_x:secret@127.0.0.1:${stack.proxy.writePort}/writes`, { max: 1 });
  expect((await errorOf(plain`select 1`)).code).toBe("28000");
  await plain.end({ timeout: 0 });
});

test.concurrent("a server without dblink: the error has the statements for a superuser, after which it works", {
  timeout: TEST_MS,
}, async ({ onTestFinished: onFinished }) => {
  await using server = await postgresServer({ version: "18" });
  await server.role("plain", "createdb createrole");
  await using stack = await writeStack({ REPLICA_URL: server.as("plain") });
  const error = await writableTasks(stack, 0, { onFinished }).then(
    () => undefined,
    (thrown: { code: string; message: string }) => thrown,
  );
  expect(error).toMatchObject({
    code: "conflict",
    message: expect.stringContaining("create extension if not exists dblink"),
  });
  const [base] = await stack.ctx.db<{ id: string; name: string }[]>`
    select b.id, d.name from bases as b join databases as d on d.id = b.database_id`;
  await server.run([dblinkSetup("plain")], base!.name);
  const changed = await updateSettings(stack.managed, await getBase(stack.ctx.db, base!.id), {
    sqlWrites: true,
  });
  expect(changed.settings.sqlWrites).toBe(true);
});

test.concurrent("behind round trips of 100 ms, and where the way to the endpoint breaks in a call, each row is made once or not at all", async ({
  onTestFinished: onFinished,
}) => {
  const { hostname, port } = new URL(inject("clusterUrl"));
  const writePort = await freePort();
  await using toReplica = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
  await using toEndpoint = await faultProxy({ host: "127.0.0.1", port: writePort }, { isPostgres: false });
  await using stack = await writeStack({
    REPLICA_URL: toReplica.over(inject("clusterUrl")),
    WRITE_PORT: String(writePort),
    UPSTREAM_TIMEOUT_MS: "5000",
  });
  const { managed } = stack;
  const distant = { ...managed, config: { ...managed.config, writePort: toEndpoint.port } };
  const at = await writableTasks({ ...stack, managed: distant }, 0, { onFinished });
  const { url } = await at.writer();
  // The client is near its server, and Basetide is not.
  const near = Object.assign(new URL(url), { hostname, port }).href;
  const sql = postgres(near, { max: 1, onnotice: () => {} });
  for (const line of [toReplica, toEndpoint]) line.delayMs = DELAY_MS;
  const wanted: string[] = [];
  for (const mode of ["at_commit", "at_once"]) {
    await sql`select set_config('basetide.writes', ${mode}, false)`;
    for (let nth = 0; nth < 4; nth++) {
      const names = Array.from(
        { length: mode === "at_commit" ? 12 : 1 },
        (_, row) => `${mode} ${nth} ${row}`,
      );
      const isKept = nth !== 1;
      const writing = sql.begin("read write", async (tx) => {
        await tx`insert into write.tasks (name) select unnest(${names}::text[])`;
        if (!isKept) throw new Error("not wanted");
      });
      if (isKept || mode === "at_once") wanted.push(...names);
      if (isKept) await writing;
      else await expect(writing).rejects.toThrow("not wanted");
    }
  }
  expect(at.inSource().map(({ Name }) => Name)).toEqual(wanted);
  const { control } = stack.sandbox;
  for (const when of ["before", "after"] as const) {
    const fault = control.addFault({ kind: "hang", count: 1, when, base: at.sourceBaseId });
    const writing = sql`insert into write.tasks (name) values (${when})`;
    const failing = errorOf(writing);
    await until(() => control.faults().some(({ id, played }) => id === fault.id && played === 1), {
      what: "the call is under way",
    });
    toEndpoint.reset();
    expect((await failing).code).toMatch(/^08/);
  }
  const open = async () => (await sql`select from write.log where state in ('sent', 'waiting')`).length;
  await until(async () => (await open()) === 0, { what: "all writes have a result", timeoutMs: 60_000 });
  const made = at.inSource().map(({ Name }) => Name);
  expect(new Set(made).size).toBe(made.length);
  expect(await sql`select from write.log where state = 'applied'`).toHaveLength(made.length);
  await at.sync();
  expect(await sql`select from tasks`).toHaveLength(made.length);
  await sql.end();
}, 120_000);
