/** SQL writes while the tables under them change: transactions that are open meanwhile wait for nothing, and end well. */
import type postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  getBase,
  pause,
  readSelectable,
  resume,
  setSelection,
  updateSettings,
} from "../../../core/control/bases";
import { errorOf } from "../../support/error-of";
import { slowness } from "../../support/machine-speed";
import type { ProxyStack } from "../../support/proxy-stack";
import { writableTasks, writeStack } from "../../support/sql-writes";

/** The longest wait that the specification allows, ms. */
const MOST_WAIT_MS = 3000;

let stack: ProxyStack;

beforeAll(async () => {
  stack = await writeStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

test("swaps, renames, selections and pauses while transactions are open", {
  timeout: 120_000 * slowness(),
}, async () => {
  const at = await writableTasks(stack, 5);
  const { control } = stack.sandbox;
  const base = () => getBase(stack.ctx.db, at.base.id);
  const writers = await Promise.all(Array.from({ length: 2 }, () => at.writer()));
  const committed: string[] = [];
  const errors: string[] = [];
  let longestMs = 0;
  let isOver = false;
  /** Runs a statement, and notes how long it took beyond Airtable's own calls. */
  const timed = async <T>(work: PromiseLike<T>): Promise<T> => {
    const from = performance.now();
    try {
      return await work;
    } finally {
      longestMs = Math.max(longestMs, performance.now() - from);
    }
  };
  const write = async (sql: postgres.Sql, who: number) => {
    for (let nth = 0; !isOver; nth++) {
      const name = `${who} ${nth}`;
      try {
        await sql.begin(async (tx) => {
          // The columns that no change below touches.
          await timed(tx`insert into write.tasks (status) values ('Open')`);
          await timed(tx`insert into write.tasks (name) values (${name})`);
          // The transaction stays open for as long as a reader's would.
          await timed(tx`select pg_sleep(${0.05 + 0.1 * who})`);
        });
        committed.push(name);
      } catch (error) {
        errors.push((error as { code: string }).code);
      }
      // A change of tables waits for a moment in which no transaction holds them.
      await Bun.sleep(300 * Math.random() + 200);
    }
  };
  const writing = writers.map(write);
  const changes: [string, () => unknown][] = [
    ["a field is renamed", () => control.renameField(at.sourceBaseId, "Tasks", "Hours", "Effort")],
    ["a field is deleted", () => control.deleteField(at.sourceBaseId, "Tasks", "Took")],
    [
      "all tables are swapped",
      async () => updateSettings(stack.managed, await base(), { linkedRecordsAsText: true }),
    ],
    [
      "a field is left out",
      async () => {
        const current = await base();
        const selectable = await readSelectable(stack.managed, current);
        const tasks = selectable.tables.find(({ name }) => name === "Tasks")!;
        const due = tasks.fields.find(({ name }) => name === "Due")!;
        const tables = { [tasks.id]: { copied: true, fields: { [due.id]: "omitted" as const } } };
        await setSelection(stack.managed, current, { newTables: "copy", tables }, selectable);
      },
    ],
    ["a table is renamed", () => control.renameTable(at.sourceBaseId, "People", "Persons")],
    ["it is paused", async () => pause(stack.managed, await base())],
    ["it is resumed", async () => resume(stack.managed, await base())],
  ];
  try {
    for (const [what, change] of changes) {
      await change();
      if (what !== "it is paused") await at.sync();
    }
  } finally {
    isOver = true;
    await Promise.all(writing);
  }
  expect(errors.filter((code) => code !== "42703" && code !== "42P01")).toEqual([]);
  expect(errors.length).toBeLessThan(committed.length);
  // 10 ms of each call are the source's; the sleeps are at most 0.15 s.
  expect(longestMs).toBeLessThan((MOST_WAIT_MS + 150) * slowness());
  const names = at.inSource().map(({ Name }) => Name);
  expect(names.filter((name) => committed.includes(name as string)).sort()).toEqual(committed.toSorted());
  expect(await writers[0]!`select from write.log where state not in ('applied')`).toEqual([]);
});

test("a column that Airtable has deleted before COMMIT is named by the error", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const error = await errorOf(
    sql.begin(async (tx) => {
      await tx`insert into write.tasks (name, hours) values ('New', 1)`;
      stack.sandbox.control.deleteField(at.sourceBaseId, "Tasks", "Hours");
    }),
  );
  expect(error).toMatchObject({
    code: "42703",
    detail: "HTTP 422 UNKNOWN_FIELD_NAME",
    column_name: "hours",
    table_name: "tasks",
  });
  expect(at.inSource()).toHaveLength(3);
  await at.sync();
  expect((await errorOf(sql`insert into write.tasks (hours) values (1)`)).code).toBe("42703");
});

test("rights on single columns stay when the view is made again, under the new name of a column", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer({ tables: ["people"] });
  await stack.withOwner(at.replicated, (owner) =>
    owner.unsafe(`grant select, update (status), insert (name) on write.tasks to ${sql.role}`),
  );
  const check = async (name: string) => {
    await sql.unsafe(`insert into write.tasks (${name}) values ('New')`);
    await sql`update write.tasks set status = 'Done' where loud = 'NEW'`;
    expect((await errorOf(sql`update write.tasks set urgent = true`)).code).toBe("42501");
    expect((await errorOf(sql`delete from write.tasks`)).code).toBe("42501");
  };
  await check("name");
  stack.sandbox.control.renameField(at.sourceBaseId, "Tasks", "Name", "Title");
  await at.sync();
  await check("title");
});

test("I8: objects that a writer puts in the way of the triggers' functions are not used", async () => {
  const at = await writableTasks(stack);
  const sql = await at.writer();
  const tricks = [
    "set search_path = pg_temp, public, write, pg_catalog",
    "create temp table captured (what text)",
    "create temp table endpoint (connection text)",
    "insert into pg_temp.endpoint values ('host=attacker')",
    "create temp table fields (table_id text, field_id text, name text, is_writable boolean)",
    "create temp table writers (role name, mode text)",
    `create function pg_temp.jsonb_build_object(text, text) returns jsonb language plpgsql as
       $$ begin insert into pg_temp.captured values ('function'); return '{}'; end $$`,
    `create function pg_temp.current_setting(text, boolean) returns text language plpgsql as
       $$ begin insert into pg_temp.captured values ('setting'); return 'at_once'; end $$`,
    `create function pg_temp.same(jsonb, jsonb) returns boolean language plpgsql as
       $$ begin insert into pg_temp.captured values ('operator'); return true; end $$`,
    "create operator pg_temp.= (leftarg = jsonb, rightarg = jsonb, function = pg_temp.same)",
    "create function pg_temp.kind(text) returns jsonb language sql as $$ select '{}'::jsonb $$",
    "create cast (text as jsonb) with function pg_temp.kind(text) as implicit",
    "create domain pg_temp.sneaky as text",
    "create trigger write instead of insert on write.tasks for each row execute function write_own.write_row('x')",
    "create temp view tasks as select * from public.tasks",
    "create trigger write instead of insert on pg_temp.tasks for each row execute function write_own.write_row('x')",
    "select write_own.intend('{}')",
    "select write_own.send('[]')",
    "select write_own.log_rows()",
    "alter function write.submit() owner to current_user",
    "set session authorization postgres",
    "set role basetide",
    "select basetide_dblink.dblink('host=x', 'select 1')",
    "create extension dblink",
    "create extension postgres_fdw",
    "grant usage on schema write_own to public",
  ];
  for (const trick of tricks) await sql.unsafe(trick).catch(() => {});
  await sql`insert into write.tasks (name, status) values (${"Plain"}, 'Open'::text)`;
  await sql.unsafe("insert into write.tasks (name) values ('Cast'::pg_temp.sneaky)").catch(() => {});
  expect(await sql`select * from pg_temp.captured`.catch(() => [])).toEqual([]);
  const added = at.inSource().slice(3);
  expect(added[0]).toMatchObject({ Name: "Plain", Status: "Open" });
  expect(await sql`select state from write.log where state <> 'applied'`).toEqual([]);
  for (const closed of ["intents", "endpoint", "fields", "writers"])
    expect((await errorOf(sql.unsafe(`select * from write_own.${closed}`))).code).toBe("42501");
  const [{ n } = { n: 1 }] = await sql<{ n: number }[]>`
    select count(*)::int as n from pg_proc as p join pg_namespace as s on s.oid = p.pronamespace
    where s.nspname in ('write', 'write_own') and p.prosecdef
      and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']`;
  expect(n).toBe(0);
});
