/**
 * I8 on a real server: credentials of one database open nothing else and change nothing. Every kind of role tries what
 * must fail, in a transaction that it has made read-write: defaults are not the protection.
 */
import type postgres from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import {
  changeShape,
  claimEpoch,
  compileMapper,
  databaseUrl,
  dropDatabase,
  installReplica,
  mapRecords,
  markSyncStarted,
  openReplica,
  planSchema,
  provisionDatabase,
  setWritable,
  startBuild,
} from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { controlDatabase } from "../../support/database";
import { putBuild } from "../../support/put-build";
import { readerOf, type TestReplica, testReplica } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

const REFUSED = /^(42501|42809|25006|0A000)$/;

/** One row in `items`, which is ours. */
async function filledReplica(): Promise<TestReplica> {
  const made = await testReplica();
  onTestFinished(() => made[Symbol.asyncDispose]());
  const { replica, epoch } = made;
  const schema = { tables: [sourceTable("tblItems", "Items", { Name: "text" })] };
  const plan = planSchema(new Map(), schema, { linkedRecordsAsText: false, lookupsAsText: false });
  await changeShape(replica, epoch, new Map(), plan);
  const spec = plan.rebuild[0]!;
  const build = await startBuild(replica, epoch, spec);
  await build.append(mapRecords(compileMapper(spec), [sourceRecord("rec1", { fld0: "bolt" })], []));
  expect(await putBuild({ replica, epoch }, build, undefined)).toBe(true);
  return made;
}

/** The result of `statement`: `done`, or the SQLSTATE that it was refused with. */
async function attempt(sql: postgres.Sql, statement: string): Promise<string> {
  return sql
    .begin("read write", (query) => query.unsafe(statement))
    .then(
      () => "done",
      (error: { code?: string; message?: string }) => error.code ?? String(error.message),
    );
}

async function expectRefused(sql: postgres.Sql, statements: string[], expected = REFUSED): Promise<void> {
  const answers: [string, string][] = [];
  for (const statement of statements) answers.push([statement, await attempt(sql, statement)]);
  expect(answers.filter(([, answer]) => !expected.test(answer))).toEqual([]);
}

const changesOfOurs = [
  "insert into items (id, created_time) values ('x', now())",
  "update items set name = 'mine'",
  "delete from items",
  "merge into items using (values ('rec1')) as v (id) on items.id = v.id when matched then delete",
  "truncate items",
  "copy items from stdin",
  "select * from items for update",
  "select * from items for key share",
  "lock table items in row exclusive mode",
  "lock table items in access exclusive mode",
  "drop table items",
  "alter table items add column mine int",
  "alter table items owner to current_user",
  "alter table items rename to mine",
  "create index on items (name)",
  "create statistics on id, name from items",
  "create policy p on items",
  "create rule r as on select to items do instead select 1",
  "create trigger t before insert on items for each row execute function pg_catalog.suppress_redundant_updates_trigger()",
  "comment on table items is 'mine'",
  "reindex table items",
  "update _sync_meta set started_at = now()",
  "insert into _sync_issues (table_name, record_id, field, value, reason) values ('', '', '', '', '')",
  "drop view __sync_meta__",
  "drop schema public cascade",
  "alter schema public rename to other",
  "alter default privileges for role postgres in schema public grant all on tables to public",
];

const theSwapSchema = [
  "select * from public_swap._state",
  "select * from public_swap._recent_writes",
  "select spec from public_swap._tables",
  "update public_swap._state set epoch = epoch + 1",
  "select nextval('public_swap._versions')",
  "select setval('public_swap._versions', 1)",
  "select public_swap.claim()",
  "select public_swap.lock_table('tblItems')",
  "select public_swap.trim_recent_writes(1, 1)",
  "create table public_swap.mine (a int)",
  "grant usage on schema public_swap to current_user",
  "drop schema public_swap cascade",
];

const makingThings = [
  "create table mine (a int)",
  "create table mine as select 1 as one",
  "select 1 as one into mine",
  "create view mine as select 1",
  "create materialized view mine as select 1",
  "create sequence mine",
  "create type mine as (a int)",
  "create domain mine as int",
  "create function mine() returns int language sql as 'select 1'",
  "create procedure mine() language sql as 'select 1'",
  "do $$ begin create table mine (a int); end $$",
  "create temp table mine (a int)",
  "create temp view mine as select 1",
  "create function pg_temp.mine() returns int language sql as 'select 1'",
];

const theServer = [
  // The file system and programs
  "copy (select 1) to '/tmp/basetide-isolation'",
  "copy (select 1) to program 'true'",
  "create table pg_temp.mine (a text); copy mine from '/etc/passwd'",
  "select pg_read_file('/etc/passwd')",
  "select pg_read_binary_file('/etc/passwd')",
  "select pg_stat_file('/etc/passwd')",
  "select pg_ls_dir('/')",
  "select pg_ls_logdir()",
  "select pg_ls_waldir()",
  "select lo_import('/etc/passwd')",
  "load '$libdir/dblink'",
  "create function mine() returns int language c as 'mine'",
  "create function mine() returns int language internal as 'int4pl'",
  // Large objects and the write-ahead log
  "select lo_create(0)",
  "select lo_creat(-1)",
  "select lo_from_bytea(0, 'x')",
  "select lo_put(1, 0, 'x')",
  "select lowrite(0, 'x')",
  "select pg_logical_emit_message(false, 'a', 'b')",
  "select pg_switch_wal()",
  "select pg_create_restore_point('mine')",
  "select pg_create_logical_replication_slot('mine', 'pgoutput')",
  "checkpoint",
  // Other databases and servers
  "create extension postgres_fdw",
  "select basetide_dblink.dblink_connect('x', 'host=localhost')",
  "create extension postgres_fdw",
  "create extension file_fdw",
  "create foreign data wrapper mine",
  "create publication mine",
  "create subscription mine connection 'host=127.0.0.1' publication mine with (connect = false)",
  "select pg_database_size('postgres')",
  // Other roles
  "set role postgres",
  "set role pg_read_all_data",
  "set session authorization postgres",
  "create role mine",
  "alter role current_user superuser",
  "alter role current_user createdb",
  "alter role current_user connection limit -1",
  "alter role postgres password 'mine'",
  "grant pg_read_all_data to current_user",
  "grant postgres to current_user",
  "select rolpassword from pg_authid",
  "select passwd from pg_shadow",
  // Other sessions, and the server's settings
  "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user",
  "select pg_cancel_backend(pid) from pg_stat_activity where usename <> current_user",
  "select pg_log_backend_memory_contexts(pg_backend_pid())",
  "select pg_stat_reset()",
  "select pg_reload_conf()",
  "select pg_rotate_logfile()",
  "select pg_promote()",
  "set session_replication_role = replica",
  "set log_statement = 'none'",
  "select * from pg_hba_file_rules",
  "select * from pg_file_settings",
  "select subconninfo from pg_subscription",
  "select stavalues1 from pg_statistic",
];

/** What Postgres does not allow in a transaction. */
const alone = ["create database mine", "alter system set work_mem = '1GB'", "drop database postgres"];

/** Each use of these takes a transaction id, and a loop takes millions. */
const transactionIds = [
  "select txid_current()",
  "select pg_current_xact_id()",
  "do $$ begin perform 1; end $$",
  "do $$ begin for i in 1..100000000 loop commit; end loop; end $$",
  "create function pg_temp.mine() returns int language plpgsql as 'begin return 1; end'",
];

const ourLocks = [
  "select pg_advisory_lock(1)",
  "select pg_try_advisory_lock(1)",
  "select pg_advisory_lock_shared(1)",
  "select pg_try_advisory_lock_shared(1)",
  "select pg_advisory_xact_lock(hashtextextended('public_swap epoch', 0))",
  "select pg_advisory_xact_lock_shared(hashtextextended('public_swap epoch', 0))",
  "select pg_try_advisory_xact_lock(hashtextextended('public_swap table tblItems', 0))",
  "select pg_try_advisory_xact_lock_shared(1, 1)",
  "select pg_advisory_unlock_all()",
  "select pg_notify('any', '')",
];

test("I8: a customer's role can read, and every attempt at more is refused", async () => {
  const { readerUrl } = await filledReplica();
  await using customer = readerOf(readerUrl);
  expect(await customer`select name from items`).toMatchObject([{ name: "bolt" }]);
  const all = [...changesOfOurs, ...theSwapSchema, ...makingThings, "create schema mine", ...theServer];
  await expectRefused(customer, [...all, ...ourLocks, ...transactionIds]);
  await customer`set default_transaction_read_only = off`;
  for (const statement of alone) {
    await expect(customer.unsafe(statement), statement).rejects.toMatchObject({ code: "42501" });
  }
  // Postgres reports only that these had no effect.
  await customer`grant select on items to public`;
  await customer`vacuum items`;
  expect(await customer`select has_table_privilege('public', 'items', 'select') as shown`).toMatchObject([
    { shown: false },
  ]);
  expect(await customer`select name from items`).toMatchObject([{ name: "bolt" }]);
});

test("I8: in a writable database a role can create objects of its own, and do nothing else", async () => {
  const { readerUrl, ownerUrl, role } = await filledReplica();
  await setWritable(ownerUrl, role, "public", true);
  await using customer = readerOf(readerUrl);
  for (const statement of makingThings.slice(0, 4)) {
    expect([statement, await attempt(customer, `${statement.replace("mine", "own")}; rollback`)]).toEqual([
      statement,
      "done",
    ]);
  }
  await expectRefused(customer, [...changesOfOurs, ...theSwapSchema, "create schema mine", ...ourLocks]);
  const server = theServer.filter((statement) => !statement.includes("pg_temp"));
  await expectRefused(customer, server);
  // Blocking a drop or a change of our table requires a right on it.
  await expectRefused(customer, [
    "create table child () inherits (items)",
    "create table part partition of items default",
    "create table mine (item text references items)",
    "create function mine() returns trigger language plpgsql security definer as 'begin return null; end';" +
      " create trigger t after insert on items execute function mine()",
  ]);
});

test("I8: credentials of one database open no other, and a role without grants opens none", async () => {
  const [own, other] = [await filledReplica(), await filledReplica()];
  await using control = await controlDatabase();
  const nobody = `bt_nobody_${crypto.randomUUID().slice(0, 8)}`;
  await asAdmin((admin) => admin.unsafe(`create role ${nobody} login password 'nobody'`));
  onTestFinished(() => asAdmin(async (admin) => void (await admin.unsafe(`drop role ${nobody}`))));
  const logins = [
    { login: new URL(own.readerUrl), opens: new URL(own.ownerUrl).pathname },
    { login: Object.assign(new URL(own.readerUrl), { username: nobody, password: "nobody" }), opens: null },
  ];
  const databases = [own.ownerUrl, other.ownerUrl, control.url].map((url) => new URL(url).pathname);
  for (const { login, opens } of logins) {
    for (const pathname of [...databases, "/postgres", "/template1"]) {
      await using intruder = readerOf(Object.assign(new URL(login), { pathname }).href);
      const answer = await intruder`select 1`.then(
        () => "opened",
        (error: { code?: string }) => error.code,
      );
      expect([pathname, answer]).toEqual([pathname, pathname === opens ? "opened" : "42501"]);
    }
  }
});

test("I8: a role sees that other sessions exist, and not what they do", async () => {
  const { readerUrl, replica } = await filledReplica();
  await using customer = readerOf(readerUrl);
  await replica.sql`select 'what only we may know'`;
  const sessions = await customer<
    { query: string; client_addr: string | null; backend_start: Date | null }[]
  >`
    select query, client_addr, backend_start from pg_stat_activity where usename <> current_user`;
  expect(sessions.length).toBeGreaterThan(0);
  expect(new Set(sessions.map(({ query }) => query))).toEqual(new Set(["<insufficient privilege>"]));
  expect(sessions.every(({ client_addr, backend_start }) => !client_addr && !backend_start)).toBe(true);
});

test("I8: what no server can forbid a role affects only that role's own sessions", async () => {
  const { readerUrl, ownerUrl, role } = await filledReplica();
  await using control = await controlDatabase();
  const heard: string[] = [];
  await control.sql.listen("anybody", (payload) => heard.push(payload));
  await using customer = readerOf(readerUrl);
  for (const statement of [
    "set statement_timeout = 0",
    "set default_transaction_read_only = off",
    `alter role ${role} set statement_timeout = 0`,
    `alter role ${role} password 'of my own'`,
    // Notified in that very database, where none of our sessions listens.
    "notify anybody, 'from a customer'",
    "lock table items in access share mode",
  ]) {
    expect([statement, await attempt(customer, statement)]).toEqual([statement, "done"]);
  }
  await control.sql.notify("anybody", "ours");
  await expect.poll(() => heard).toEqual(["ours"]);
  // In any case, the role still has no right to write.
  const changed = Object.assign(new URL(readerUrl), { password: "of my own" });
  await using again = readerOf(changed.href);
  await expectRefused(again, [...changesOfOurs, ...makingThings]);
  expect(await asOwner(ownerUrl, (sql) => sql`select name from items`)).toMatchObject([{ name: "bolt" }]);
});

test("where the server's admin cannot keep customers from advisory locks, one that takes ours delays our write without blocking it", async () => {
  const admin = `bt_admin_${crypto.randomUUID().slice(0, 8)}`;
  await asAdmin((sql) => sql.unsafe(`create role ${admin} login createdb createrole password 'admin'`));
  const adminUrl = Object.assign(new URL(inject("postgresUrl")), { username: admin, password: "admin" }).href;
  // Another test may have closed the server's own database meanwhile.
  await asAdmin((sql) => sql.unsafe(`grant connect on database postgres to ${admin}`));
  const made = await provisionDatabase(adminUrl);
  onTestFinished(async () => {
    await dropDatabase(inject("postgresUrl"), made.database, made.role);
    await asAdmin((sql) => sql.unsafe(`drop owned by ${admin}; drop role ${admin}`));
  });
  const ownerUrl = databaseUrl(adminUrl, made.database);
  await installReplica(ownerUrl, { schema: "public", role: made.role });
  const own = new URL(ownerUrl);
  await using customer = readerOf(
    Object.assign(new URL(own), { username: made.role, password: made.password }).href,
  );
  const replica = openReplica({ url: ownerUrl, schema: "public" });
  onTestFinished(() => replica.close());
  const epoch = await claimEpoch(replica);
  // Of the single connection, since nothing here runs two queries at once.
  await replica.sql`set lock_timeout = '200ms'`;
  await customer`select pg_advisory_lock(hashtextextended('public_swap epoch', 0))`;
  await expect(markSyncStarted(replica, epoch)).rejects.toMatchObject({ code: "replica_busy" });
  const claiming = claimEpoch(replica);
  await customer`select pg_advisory_unlock_all()`;
  expect(await claiming).toBe(epoch + 1);
});

test("our connections to a replica never wait for a lock without a limit", async () => {
  const { replica } = await filledReplica();
  const [row] = await replica.sql`select current_setting('lock_timeout') as timeout`;
  expect(row).toEqual({ timeout: "2s" });
});

async function asOwner<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  await using sql = readerOf(url);
  return await work(sql);
}
