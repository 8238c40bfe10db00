/** Objects of ours that the owner of a database drops, truncates or blocks: they are restored, or named. */
import { expect, test } from "vitest";
import { ensureInstalled, recordDamage } from "../../../core/replica";
import { forgetRows } from "../../../core/sync/state";
import { type Engine, testEngine } from "../../support/engine";
import { liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

const names = Array.from({ length: 30 }, (_, index) => ({ id: `rec${1000 + index}`, name: `n${index}` }));

async function synced<E extends Engine = Engine>(made?: E): Promise<E> {
  const engine = made ?? ((await testEngine()) as E);
  const records = names.map(({ id, name }) => sourceRecord(id, { fld0: name, fld1: 1 }));
  engine.source.add(sourceTable("tblP", "People", { Name: "text", Size: "number" }), records);
  engine.source.add(sourceTable("tblT", "Tasks", { Name: "text" }), [sourceRecord("recT", { fld0: "t" })]);
  await engine.sync();
  await engine.sync();
  return engine;
}

/** How the next lease of the same worker begins. */
async function nextLease(engine: Engine): Promise<void> {
  const { replica, ownerUrl, role } = engine.replica;
  await ensureInstalled(replica, { url: ownerUrl, schema: "public", role });
  forgetRows(engine.cache, await recordDamage(replica, engine.input().epoch));
}

async function expectWhole(engine: Engine): Promise<void> {
  const rows = (await engine.rows()) as { id: string; name: string; size: number }[];
  expect(rows.map(({ id, name }) => ({ id, name }))).toEqual(names);
  expect(rows.every(({ size }) => size === 1)).toBe(true);
  await using reader = readerOf(engine.replica.readerUrl);
  const [seen] = await reader`
    select (select count(*)::int from public.people) as people, (select count(*)::int from public.tasks) as tasks,
      (select completed_at is not null from public.__sync_meta__) as is_synced`;
  expect(seen).toEqual({ people: names.length, tasks: 1, is_synced: true });
  // Nothing remains to be done, and no table has got a second name.
  expect(await engine.sync()).toMatchObject({ inserted: 0, updated: 0, deleted: 0, kind: "sweep" });
  const tables = await engine.replica.replica.sql`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1`;
  expect(tables.map(({ name }) => name)).toEqual(["_sync_issues", "_sync_meta", "people", "tasks"]);
}

test.for([
  ["a table", "drop table public.people cascade"],
  ["all tables", "drop table public.people, public.tasks cascade"],
  ["a column", "alter table public.people drop column size cascade"],
  ["the service's own tables", "drop table public._sync_meta, public._sync_issues cascade"],
  ["the schema", "drop schema public cascade; create schema public; grant usage on schema public to public"],
  ["the schema, for good", "drop schema public cascade"],
])("a dropped object is restored by the next lease: %s", async ([, statement]) => {
  const engine = await synced();
  await engine.replica.replica.sql.unsafe(statement!).simple();
  await nextLease(engine);
  expect(await engine.sync()).not.toHaveProperty("error");
  await expectWhole(engine);
});

test("a table without its ids says what to do, and is restored then", async () => {
  const engine = await synced();
  const { sql } = engine.replica.replica;
  await sql`alter table public.people drop column id cascade`;
  await nextLease(engine);
  const { failing } = await engine.sync();
  expect(JSON.stringify(failing)).toContain("drop table public.people");
  await sql`drop table public.people`;
  await nextLease(engine);
  expect(await engine.sync({ isForced: true })).not.toHaveProperty("error");
  await expectWhole(engine);
});

test("a table is restored if the sync that was running when it was dropped has completed", async () => {
  const engine = await synced();
  await engine.replica.replica.sql`drop table public.people`;
  // Nothing has changed, so the sync writes no row.
  expect(await engine.sync()).not.toHaveProperty("error");
  await nextLease(engine);
  expect(await engine.sync()).not.toHaveProperty("error");
  await expectWhole(engine);
});

test("each of the service's own relations is restored", async () => {
  const engine = await synced();
  const { sql } = engine.replica.replica;
  const own = () => sql<{ name: string; kind: string }[]>`
    select format('%I.%I', n.nspname, c.relname) as name,
      case c.relkind when 'S' then 'sequence' when 'v' then 'view' else 'table' end as kind
    from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
    where n.nspname in ('public', 'public_swap') and c.relkind in ('r', 'v', 'S') and c.relname like '\\_%' order by 1`;
  const before = [...(await own())];
  for (const { name, kind } of before) {
    await sql.unsafe(`drop ${kind} ${name} cascade`);
    await nextLeaseOfAnother(engine);
    expect([...(await own())], name).toEqual(before);
    expect(await engine.sync(), name).not.toHaveProperty("error");
  }
  await expectWhole(engine);
});

test("dropped objects are restored in live mode, too", async () => {
  const engine = await synced(await liveEngine());
  await engine.replica.replica.sql`drop table public.people`;
  await nextLease(engine);
  const running = engine.start();
  const isBack = async () => ((await engine.rows().catch(() => [])) as unknown[]).length === names.length;
  await until(isBack, { what: "the table is back" });
  await running.stop();
});

test("a resync restores what was dropped just before", async () => {
  const engine = await synced();
  await engine.replica.replica.sql`drop table public.people`;
  expect(await engine.sync({ isForced: true })).not.toHaveProperty("error");
  await expectWhole(engine);
});

test("names that change meanwhile are applied once the table exists again", async () => {
  const engine = await synced();
  await engine.replica.replica.sql`drop table public.people`;
  const [people, tasks] = engine.source.tables;
  [people!.table.name, tasks!.table.name] = ["Tasks", "People"];
  await nextLease(engine);
  for (let sync = 0; sync < 3; sync++) await engine.sync();
  expect(await engine.rows("people")).toMatchObject([{ id: "recT" }]);
  expect(await engine.rows("tasks")).toHaveLength(names.length);
});

test("truncated rows are written again, and objects that depend on the table stay", async () => {
  const engine = await synced();
  const { sql } = engine.replica.replica;
  await sql`create index by_name on public.people (name)`;
  await sql`truncate public.people`;
  await nextLease(engine);
  expect(await engine.sync()).toMatchObject({ kind: "sweep", inserted: names.length });
  await expectWhole(engine);
  expect(await sql`select from pg_class where relname = 'by_name'`).toHaveLength(1);
});

test("tables of an earlier copy are taken over, with the objects that depend on them", async () => {
  const engine = await synced();
  const { replica } = engine.replica;
  const { sql } = replica;
  await sql`create index by_name on public.people (name)`;
  await sql`create view public.short as select name from public.people where length(name) < 3`;
  await sql`drop schema public_swap cascade`;
  engine.source.tables[1]!.table.name = "Jobs";
  await nextLeaseOfAnother(engine);
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(await engine.rows()).toHaveLength(names.length);
  expect(await engine.rows("jobs")).toHaveLength(1);
  expect(await sql`select from pg_class where relname = 'by_name'`).toHaveLength(1);
  expect(await sql`select from public.short`).toHaveLength(10);
  expect(await sql`select from pg_class where relname in ('people_2', 'tasks')`).toEqual([]);
});

test("an index of another role that has a key's name does not prevent its table", async () => {
  const engine = await testEngine();
  const { sql } = engine.replica.replica;
  await sql`create table public.theirs (id int constraint "_tblP_pkey" primary key)`;
  engine.source.add(sourceTable("tblP", "People", { Name: "text" }), [sourceRecord("rec1", { fld0: "a" })]);
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(await engine.rows()).toHaveLength(1);
});

test.for([
  [
    "a check",
    "alter table public.people add constraint brief check (length(name) < 9)",
    /brief .*public\.people/,
  ],
  ["a unique index", "create unique index one_each on public.people (name)", /one_each .*public\.people/],
  [
    "a column that takes no null",
    "alter table public.people alter size set not null",
    /size.*public\.people/,
  ],
  [
    "a trigger",
    `create function public.guard() returns trigger language plpgsql as
       $$ begin if new.name = 'n1' then raise 'not this one'; end if; return new; end $$;
     create trigger guard before insert or update on public.people for each row execute function public.guard()`,
    /public\.guard\(\).*not this one/,
  ],
  [
    "a trigger that names a table without its schema",
    `create table public.log (id text);
     create function public.note() returns trigger language plpgsql as
       $$ begin insert into log values (new.id); return new; end $$;
     create trigger note before insert or update on public.people for each row execute function public.note()`,
    /public\.note\(\).*"log".*need their schema/,
  ],
] as const)(
  "whatever refuses rows is named, other tables continue, and the table recovers when it is removed: %s",
  async ([, statement, words]) => {
    const engine = await synced();
    await engine.replica.replica.sql.unsafe(statement).simple();
    const [people, tasks] = engine.source.tables;
    people!.records.get("rec1000")!.fields = { fld0: "n1" };
    people!.records.get("rec1001")!.fields = { fld0: "n1 but far too long", fld1: 2 };
    tasks!.records.get("recT")!.fields.fld0 = "other";
    const { failing } = await engine.sync();
    expect(failing).toMatchObject([
      { table_id: people!.table.id, code: "replica_refused", message: expect.stringMatching(words) },
    ]);
    expect(await engine.rows("tasks")).toMatchObject([{ name: "other" }]);
    await engine.replica.replica.sql
      .unsafe(`
      drop trigger if exists guard on public.people; drop trigger if exists note on public.people;
      alter table public.people drop constraint if exists brief; drop index if exists public.one_each;
      alter table public.people alter size drop not null`)
      .simple();
    const isWell = async () => {
      const { error, failing: still } = await engine.sync();
      return !error && !still;
    };
    await until(isWell, { what: "the table is synced again", timeoutMs: 20_000, intervalMs: 100 });
    expect(await engine.rows()).toMatchObject([
      { name: "n1" },
      { name: "n1 but far too long" },
      {},
      ...Array(27).fill({}),
    ]);
  },
);

/** As another worker begins, without a cache of the replica. */
async function nextLeaseOfAnother(engine: Engine): Promise<void> {
  const { replica, ownerUrl, role } = engine.replica;
  await ensureInstalled(replica, { url: ownerUrl, schema: "public", role });
  await engine.restart();
  await recordDamage(replica, engine.input().epoch);
}
