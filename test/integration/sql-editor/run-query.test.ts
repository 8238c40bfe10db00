/** SQL that customers write in the console: what they see, and that nothing in it gets past its limits or the role. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createAccount, listAccounts } from "../../../core/control/accounts";
import { type Base, readerTarget, replicaShape } from "../../../core/control/bases";
import { getDatabase, setDatabaseWritable } from "../../../core/control/placement";
import { sampleQueries } from "../../../core/exports";
import { consoleRoleOf, type ReaderTarget, withReader } from "../../../core/replica";
import {
  adviceOn,
  clearHistory,
  deleteSavedQuery,
  listHistory,
  listSavedQueries,
  type PlanNode,
  pastQuery,
  queryPlanOf,
  recordQuery,
  runQuery,
  saveQuery,
  streamQuery,
} from "../../../core/sql-editor";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 60_000 });

const LIMITS = { timeoutMs: 30_000, bytes: 4_000_000, rows: 100 };

let fleet: Fleet;
let base: Base;
let target: ReaderTarget;

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const choices = { choices: [{ name: "new" }, { name: "old" }] };
  const fields = [
    { name: 'Na"me', type: "singleLineText" },
    { name: "select", type: "singleSelect", options: choices },
    { name: "Größe ☃", type: "number", options: { precision: 1 } },
    { name: "Due", type: "date", options: { dateFormat: { name: "iso" } } },
    { name: "1st", type: "checkbox", options: { icon: "check", color: "greenBright" } },
    { name: "Time Spent", type: "duration", options: { durationFormat: "h:mm" } },
  ];
  const records = ["a", "b", "c"].map((name, at) => ({ fields: { 'Na"me': name, "Größe ☃": at } }));
  const sourceId = control.createBase({
    name: "Hostile",
    tables: [
      { name: "Order", fields, records },
      { name: "It's; -- $$ a /* table", fields, records },
      { name: "user", fields: fields.slice(0, 1), records: [] },
    ],
  });
  const [order, other] = control.dump(sourceId).tables;
  control.addField(sourceId, order!.id, {
    name: "Related to",
    type: "multipleRecordLinks",
    options: { linkedTableId: other!.id },
  });
  base = await fleet.synced((await fleet.connect(sourceId)).id);
  target = await readerTarget(fleet.ctx, base);
}, 60_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

/** Sessions of the editor on the base's database. */
async function sessions(): Promise<number> {
  const owner = await fleet.owner(base);
  const [row] = await owner<[{ count: number }]>`
    select count(*)::int from pg_stat_activity
    where datname = current_database() and application_name = 'basetide console'`;
  return row.count;
}

const noSessions = () =>
  until(async () => (await sessions()) === 0, {
    what: "no session of the editor is left",
    timeoutMs: 30_000,
    intervalMs: 100,
  });

describe("what a person sees", () => {
  test("each statement's columns and rows, up to the limit", async () => {
    const { results, failure } = await runQuery(
      target,
      `select 1 as a, 'x;y' as a, null, array['p', null]; -- done;
       select n from generate_series(1, 101) as n; values (true); show server_version_num; select where false`,
      LIMITS,
    );
    expect(failure).toBeUndefined();
    expect(results.map(({ rows }) => rows.length)).toEqual([1, 100, 1, 1, 0]);
    expect(results[0]).toEqual({
      columns: [
        { name: "a", type: "integer" },
        { name: "a", type: "text" },
        { name: "?column?", type: "text" },
        { name: "array", type: "text[]" },
      ],
      rows: [["1", "x;y", null, "{p,NULL}"]],
      isCut: false,
    });
    expect(results.map(({ isCut }) => isCut)).toEqual([false, true, false, false, false]);
  });

  test("an error at its position, after the results before it", async () => {
    const sql = "select '🙂';\n-- 🙂 comment\nselect '🙂', nmae from \"order\"";
    const { results, failure } = await runQuery(target, sql, LIMITS);
    expect(results).toHaveLength(1);
    expect(failure).toMatchObject({ sqlState: "42703", message: 'column "nmae" does not exist' });
    expect(sql.slice(failure!.position)).toBe('nmae from "order"');
  });

  test("the plan of a statement, which runs only if it is measured", async () => {
    const { results, failure } = await runQuery(
      target,
      "select pg_sleep(100) from nowhere",
      LIMITS,
      "estimated",
    );
    expect({ results, failure }).toMatchObject({ results: [], failure: { sqlState: "42P01", position: 26 } });
    const planned = await runQuery(target, "select pg_sleep(100)", LIMITS, "estimated");
    expect(queryPlanOf(planned.results[0]!)).toMatchObject({
      title: "Result",
      ms: undefined,
      share: 1,
      children: [],
    });
    const sql = `select o.id from "order" as o join its_a_table as t using (id) where o.id > 'a' order by 1`;
    const measured = await runQuery(target, sql, LIMITS, "actual");
    const nodes = (node: PlanNode): PlanNode[] => [node, ...node.children.flatMap(nodes)];
    const all = nodes(queryPlanOf(measured.results[0]!)!);
    expect(all.map(({ title }) => title)).toContainEqual(expect.stringMatching(/ on order as o$/));
    expect(all.every(({ ms, estimatedRows }) => ms !== undefined && estimatedRows !== undefined)).toBe(true);
    expect(all.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 1);
    const asked = await runQuery(
      target,
      "explain (format json) select 1; explain select 1",
      LIMITS,
      "actual",
    );
    expect(asked.results.map((result) => queryPlanOf(result)?.title)).toEqual(["Result", undefined]);
    const named = [`'{"a": 1}'`, "'5'", "null"].map((value) => `select ${value}::json as "QUERY PLAN"`);
    const others = await runQuery(target, named.join(";"), LIMITS);
    expect(others.results.map(queryPlanOf)).toEqual([undefined, undefined, undefined]);
    // A measured statement is in a read-only transaction, as any other.
    const writing = await runQuery(target, 'delete from "order"', LIMITS, "actual");
    expect(writing.failure?.sqlState).toMatch(/42501|25006/);
  });

  test("a download of many rows, in parts", async () => {
    const sizes: number[] = [];
    const sql = "select n, repeat('x', 10) from generate_series(1, 2600) as n";
    const isCut = await streamQuery(
      target,
      sql,
      { ...LIMITS, rows: 2500 },
      (rows) => void sizes.push(rows.length),
    );
    expect(isCut).toBe(true);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(2500);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
    await expect(streamQuery(target, "select 1; select 2", LIMITS, () => {})).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("an error that is common in a read-only copy comes with what to do", async () => {
    const { tables } = await replicaShape(fleet.ctx, base);
    const advice = async (sql: string, mayWrite = false) => {
      const { failure } = await runQuery({ ...target, mayWrite }, sql, LIMITS);
      expect([sql, failure?.sqlState]).toEqual([sql, expect.any(String)]);
      return adviceOn(failure!, sql, tables, ["_sync_meta"]);
    };
    const writes = [
      `update "user" set na_me = 'x'`,
      "select 1; /* all */ delete from its_a_table",
      `insert into "user" (id) values ('rec1')`,
      `truncate "user"`,
      `with gone as (delete from "user" returning id) select * from gone`,
      `merge into "user" as u using "user" as v on u.id = v.id when matched then delete`,
    ];
    for (const mayWrite of [false, true]) {
      for (const sql of writes)
        expect([sql, await advice(sql, mayWrite)]).toEqual([sql, expect.stringContaining("proxy")]);
      expect(await advice("create table mine (id text)", mayWrite)).toBeUndefined();
    }
    for (const [sql, expected] of [
      ["select * from its_a_tabel", "Did you mean its_a_table?"],
      ["select 1; select * from public.oder", 'Did you mean "order"?'],
      ["select * from sync_meta", "Did you mean _sync_meta?"],
      ["select * from its_a", "Did you mean its_a_table?"],
      [`select * from "It's; -- $$ a /* table"`, "Did you mean its_a_table?"],
      ["select * from invoices", undefined],
      ["select o.id from its_a_table", undefined],
      ['select sum(na_me) from "order"', "Convert it: na_me::numeric"],
      ['select 1; select  avg( distinct o."select" ) from "order" as o', 'Convert it: o."select"::numeric'],
      ["select round(na_me, 1) from its_a_table", "Convert it: na_me::numeric"],
      ["select sum(time_spent) from its_a_table", "Convert it: time_spent::interval"],
      ['select sum("1st") from its_a_table', 'count(*) filter (where "1st")'],
      ['select sum(related_to) from "order"', "from unnest(related_to) as one"],
      ["select na_me > 5 from its_a_table", "add ::numeric"],
      ["select nowhere(1)", undefined],
      ['select id from its_a_table where na_me = "a\'b"', "Texts are in single quotes: 'a''b'"],
      // Postgres has its own hint.
      ['select "Time Spent" from its_a_table', undefined],
    ] as const) {
      const given = await advice(sql);
      expect([sql, given]).toEqual([sql, expected && expect.stringContaining(expected)]);
    }
  });

  test("samples that run, whatever the names are", async () => {
    const { tables } = await replicaShape(fleet.ctx, base);
    const { schema } = base.database;
    const samples = sampleQueries(
      schema,
      tables,
      new Map(base.tables.map(({ name, records }) => [name, records])),
    );
    expect(samples).toHaveLength(6);
    for (const table of tables) samples.push(...sampleQueries(schema, [table]));
    for (const { sql } of samples) {
      expect([sql, (await runQuery(target, sql, LIMITS)).failure]).toEqual([sql, undefined]);
    }
  });
});

describe("limits hold whatever the SQL does", () => {
  const shortly = { ...LIMITS, timeoutMs: 2500 };

  test.each([
    ["a long statement", "select pg_sleep(100)"],
    ["without the session's time limit", "set statement_timeout = 0; select pg_sleep(100)"],
    [
      "with the limit gone after the transaction",
      "set session statement_timeout = 0; commit; select pg_sleep(100)",
    ],
    ["many short ones", "select pg_sleep(1); select pg_sleep(1); select pg_sleep(1); select pg_sleep(1)"],
    ["all settings reset", "reset all; select count(*) from generate_series(1, 10000000000)"],
  ])("time: %s", async (_, sql) => {
    const began = performance.now();
    const { failure } = await runQuery(target, sql, shortly);
    expect(failure?.message).toBe("The query was stopped: it took longer than 3 s");
    expect(performance.now() - began).toBeLessThan(20_000);
    await noSessions();
  });

  test("bytes: one huge value, and many rows", async () => {
    for (const sql of [
      "select repeat('x', 100000000)",
      "select repeat('x', 100000) from generate_series(1, 90)",
    ]) {
      const { results, failure } = await runQuery(target, sql, LIMITS);
      expect(results).toEqual([]);
      expect(failure?.message).toBe("The query was stopped: its result has more than 4 MB");
    }
    await noSessions();
  });

  test("a cancelled query ends on the server, too", async () => {
    const controller = new AbortController();
    const run = runQuery(target, "select pg_sleep(100)", { ...LIMITS, signal: controller.signal });
    const owner = await fleet.owner(base);
    const isRunning = async () =>
      (await owner`select from pg_stat_activity where state = 'active' and query = 'select pg_sleep(100)'`)
        .length;
    await until(isRunning, { what: "the query runs", timeoutMs: 20_000 });
    controller.abort();
    expect((await run).failure?.message).toBe("The query was stopped: it was cancelled");
    await noSessions();
  });
});

/** Attempts to get more than to read one's own tables. Each must fail, or change nothing. */
const ESCAPES = [
  "commit; create table taken ()",
  "rollback; begin read write; create table taken ()",
  "commit and chain; set transaction read write; create table taken ()",
  "set transaction read write; create table taken ()",
  "set session characteristics as transaction read write; commit; create table taken ()",
  "select set_config('transaction_read_only', 'off', false); create table taken ()",
  "set default_transaction_read_only = off; create table taken ()",
  'delete from "order"',
  'select 1; delete from "order"',
  'with gone as (delete from "order" returning 1) select * from gone',
  'explain analyze delete from "order"',
  "do $$ begin execute 'create table taken ()'; end $$",
  "copy (select 1) to program 'true'",
  "copy (select 1) to stdout",
  "/* */ copy pg_class to '/tmp/taken'",
  "select pg_read_file('/etc/passwd')",
  "select lo_import('/etc/passwd')",
  "select * from dblink('dbname=postgres', 'select 1') as t (a int)",
  "set role postgres",
  "set session authorization postgres",
  "select * from pg_authid",
  "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user",
];

describe("the role", () => {
  async function expectNothingChanged(role: string) {
    const owner = await fleet.owner(base);
    const [row] = await owner<[{ orders: number; taken: string | null }]>`
      select (select count(*)::int from "order") as orders, to_regclass('public.taken')::text as taken`;
    expect(row).toEqual({ orders: 3, taken: null });
    const { results } = await runQuery(target, "select current_user, session_user", LIMITS);
    expect(results[0]?.rows).toEqual([[role, role]]);
  }

  test.each([false, true])(
    "is the console's, and only reads: in a writable database %s",
    async (isWritable) => {
      const database = await getDatabase(fleet.ctx.db, base.database.id);
      // The control plane's server accepts no writable databases.
      const isSet =
        !isWritable ||
        (await setDatabaseWritable(fleet.ctx, database, true).then(
          () => true,
          () => false,
        ));
      if (!isSet) {
        const owner = await fleet.owner(base);
        await owner.unsafe(`grant create on schema public to ${consoleRoleOf(database.role)}`);
        await owner.unsafe(
          `alter role ${consoleRoleOf(database.role)} set default_transaction_read_only = off`,
        );
      }
      for (const sql of ESCAPES) {
        const { failure } = await runQuery(target, sql, { ...LIMITS, timeoutMs: 10_000 });
        expect([sql, failure]).toEqual([sql, expect.anything()]);
      }
      await expectNothingChanged(consoleRoleOf(database.role));
    },
  );

  test("may run code where the server lets it, and none of them outlives its time", async () => {
    const owner = await fleet.owner(base);
    const { role } = await getDatabase(fleet.ctx.db, base.database.id);
    await owner.unsafe(`grant usage on language plpgsql to ${consoleRoleOf(role)}`);
    const deaf = `do $$ begin loop begin perform pg_sleep(60); exception when query_canceled then null; end; end loop; end $$`;
    const began = performance.now();
    const { failure } = await runQuery(target, deaf, { ...LIMITS, timeoutMs: 2500 });
    expect(failure?.message).toBe("The query was stopped: it took longer than 3 s");
    // The server's own limit ended a part of it, and not the whole.
    expect(performance.now() - began).toBeGreaterThan(2400);
    await noSessions();
  });

  test("with only a role that may write, the server takes nothing but queries", async () => {
    const own = { ...target, url: target.admin, mayWrite: true };
    const { results } = await runQuery(
      own,
      "select 1; values (2), (3); show server_version; explain select 1",
      LIMITS,
    );
    expect(results.map(({ rows }) => rows.length)).toEqual([1, 2, 1, 1]);
    const sql = 'select oops from "order"';
    const { failure } = await runQuery(own, sql, LIMITS);
    expect(sql.slice(failure?.position)).toBe('oops from "order"');
    const refused = [
      ...ESCAPES.slice(0, 13),
      "set statement_timeout = 0",
      "select 1 into taken",
      "-- \rcommit /*\nexplain */",
    ];
    for (const attempt of refused) {
      expect([attempt, (await runQuery(own, attempt, LIMITS)).failure]).toEqual([attempt, expect.anything()]);
    }
    const count = await runQuery(own, "select n from generate_series(1, 1200) as n", {
      ...LIMITS,
      rows: 1100,
    });
    expect(count.results[0]).toMatchObject({ isCut: true, rows: { length: 1100 } });
    const { role } = await getDatabase(fleet.ctx.db, base.database.id);
    await expectNothingChanged(consoleRoleOf(role));
  });

  test("an error of our own query is one of ours, and other errors are not the statement's", async () => {
    const gone = { ...target, url: "postgres://x:y@127.0.0.1:1/none" };
    await expect(runQuery(gone, "select 1", LIMITS)).rejects.toMatchObject({ code: "replica_unavailable" });
    const failing = withReader(target, LIMITS, ({ sql }) => sql`select 1 / 0`);
    await expect(failing).rejects.toMatchObject({ code: "query_failed", details: { sqlState: "22012" } });
  });
});

test("queries are saved by name, for the account alone, up to a limit", async () => {
  const { ctx } = fleet;
  const first = await saveQuery(ctx, base, { name: " Mine ", sql: "select 1" });
  const again = await saveQuery(ctx, base, { name: "Mine", sql: "select 2" });
  expect(again).toMatchObject({ id: first.id, name: "Mine", sql: "select 2" });
  expect(await listSavedQueries(ctx.db, base)).toHaveLength(1);
  await createAccount(ctx.db, { email: "other@example.org", password: "correct horse" });
  const other = (await listAccounts(ctx.db)).find(({ email }) => email === "other@example.org")!;
  const asOther = { id: base.id, accountId: other.id };
  expect(await listSavedQueries(ctx.db, asOther)).toEqual([]);
  await deleteSavedQuery(ctx.db, asOther, first.id);
  expect(await listSavedQueries(ctx.db, base)).toHaveLength(1);
  await Promise.allSettled(
    Array.from({ length: 110 }, (_, at) => saveQuery(ctx, base, { name: `q${at}`, sql: "select 1" })),
  );
  expect(await listSavedQueries(ctx.db, base)).toHaveLength(100);
  await expect(saveQuery(ctx, base, { name: "more", sql: "select 1" })).rejects.toMatchObject({
    code: "conflict",
  });
  await saveQuery(ctx, base, { name: "Mine", sql: "select 3" });
  await deleteSavedQuery(ctx.db, base, first.id);
  expect(await listSavedQueries(ctx.db, base)).toHaveLength(99);
});

test("a person's history has each query once, up to a limit, and ends with their membership", async () => {
  const { db } = fleet.ctx;
  const people = ["usr_first", "usr_second"].map((userId) => ({ userId }));
  const [first, second] = people as [{ userId: string }, { userId: string }];
  for (const { userId } of people) {
    await db`insert into users (id, name, email, email_verified)
      values (${userId}, 'Reader', ${`${userId}@example.org`}, true)`;
    await db`insert into account_members (account_id, user_id, role) values (${base.accountId}, ${userId}, 'viewer')`;
  }
  const record = (who: { userId: string }, sql: string, rows: number | null = 1) =>
    recordQuery(db, base, who, { sql, ms: 5, rows });
  const texts = async (who: { userId: string }) => (await listHistory(db, base, who)).map(({ sql }) => sql);
  await record(first, "select 1");
  await record(first, "select 2", null);
  await record(second, "select 3");
  await record(first, "select 1", 7);
  expect(await listHistory(db, base, first)).toMatchObject([
    { sql: "select 1", rows: 7 },
    { sql: "select 2", rows: null },
  ]);
  const long = `select '${"x".repeat(1000)}'`;
  await record(second, long);
  const [{ id, sql } = { id: "", sql: "" }] = await listHistory(db, base, second);
  expect(long.startsWith(sql) && sql.length < 200).toBe(true);
  expect(await pastQuery(db, base, second, id)).toBe(long);
  expect(await pastQuery(db, base, first, id)).toBeUndefined();
  expect(await pastQuery(db, { ...base, id: "bas_other" }, second, id)).toBeUndefined();

  for (let n = 0; n < 103; n++) await record(first, `select ${n} as n`);
  const kept = await texts(first);
  expect([kept.length, kept[0], kept.at(-1)]).toEqual([100, "select 102 as n", "select 3 as n"]);
  await clearHistory(db, base, first);
  expect(await texts(first)).toEqual([]);
  expect(await texts(second)).toHaveLength(2);
  await db`delete from account_members where user_id = ${second.userId}`;
  // Of a query that was still running.
  await record(second, "select 4");
  expect(await texts(second)).toEqual([]);
});
