/**
 * No object of the customer's, whatever its name, stops a table: neither one that was there before the first sync, nor
 * one that appears while a table is rebuilt.
 *
 * A table takes along names that Postgres derives from its own: its row type, the type of its arrays (`_` and the first
 * 62 bytes), its indexes, its constraints, and the sequences of its columns.
 */
import fc from "fast-check";
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import { applyIndexes, applyLinkViews, applySettings, snakeCase } from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { type Engine, testEngine } from "../../support/engine";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const RUNS = Number(process.env.FUZZ_RUNS ?? 1) * 4;

/** Syncs, and fails if the sync does. */
async function completes(engine: Engine): Promise<void> {
  const report = await engine.sync();
  expect(report.error && `${report.error.code}: ${report.error.message}`).toBe(undefined);
}

const sqlOf = (engine: Engine) => engine.replica.replica.sql as unknown as postgres.Sql;

/** Changes the type of the table's first field. */
function retype({ source }: Engine, index = 0, type: FieldType = "number"): void {
  const { table, records } = source.tables[index]!;
  Object.assign(table.fields[0]!, { type, sourceType: type });
  for (const { fields } of records.values()) fields.fld0 = type === "number" ? 1 : "1";
}

/** The names in SQL of all tables, by their ids. */
async function tableNames(engine: Engine): Promise<Record<string, string>> {
  const rows = await sqlOf(engine)<{ id: string; name: string }[]>`
    select t.table_id as id, t.name from public_swap._tables as t
      join pg_class as c on c.relname = t.name and c.relnamespace = 'public'::regnamespace and c.relkind = 'r'`;
  return Object.fromEntries(rows.map(({ id, name }) => [id, name]));
}

const LONG = "Customer satisfaction survey responses of the fiscal year 2026/27";

test.each([
  ["62 bytes, in CJK", "上下".split("").map((last) => `二〇二六年度全国支社別売上実績一覧表甲乙${last}`)],
  [
    "all 63, in Cyrillic",
    ["один", "два", "три"].map((last) => `Результаты опроса удовлетворённости клиентов ${last}`),
  ],
  ["all 63, in Latin", ["North", "South", "West"].map((region) => `${LONG}, ${region}`)],
])("tables whose names share %s, each have a table", async (_, names) => {
  const engine = await testEngine();
  for (const [index, name] of names.entries())
    engine.source.add(sourceTable(`tbl${index}`, name, { Name: "text" }), [
      sourceRecord(`rec${index}`, { fld0: "1" }),
    ]);
  await completes(engine);
  for (const index of names.keys()) retype(engine, index);
  await completes(engine);
  const shown = Object.values(await tableNames(engine));
  expect(new Set(shown).size).toBe(names.length);
  for (const name of shown)
    expect(await sqlOf(engine)`select count(*)::int as n from public.${sqlOf(engine)(name)}`).toEqual([
      { n: 1 },
    ]);
});

test.each([
  ["a table", "create table public._people (id int)"],
  ["a view", "create view public._people as select 1 as id"],
  ["an enum", "create type public._people as enum ('a')"],
  ["a domain", "create domain public._people as text"],
  ["a composite type", "create type public._people as (id int)"],
  ["a sequence", "create sequence public._people"],
])(
  "%s with the name of the type of a table's arrays stops no swap, before and after it is created",
  async (_, create) => {
    const engine = await testEngine();
    await sqlOf(engine).unsafe(create);
    engine.source.add(sourceTable("tblP", "People", { Name: "text" }), [sourceRecord("rec1", { fld0: "1" })]);
    await completes(engine);
    retype(engine);
    await completes(engine);
    await using later = await testEngine();
    later.source.add(sourceTable("tblP", "People", { Name: "text" }), [sourceRecord("rec1", { fld0: "1" })]);
    await completes(later);
    // Postgres renames the type of the arrays for it.
    await sqlOf(later).unsafe(create);
    retype(later);
    await completes(later);
    expect(await later.rows()).toMatchObject([{ id: "rec1", name: 1 }]);
  },
);

test("link views whose long names differ only at their ends all exist, through swaps and renames", async () => {
  const engine = await testEngine();
  const person = (nth: string) => `Responsible regional account manager (${nth})`;
  const fields = {
    [person("first")]: "links",
    [person("second")]: "links",
    [person("third")]: "links",
  } as const;
  const table = sourceTable("tblP", "Customer satisfaction survey responses", { ...fields, Plain: "text" });
  const near = sourceTable("tblN", "x".repeat(40), {
    [`${"y".repeat(20)}a`]: "links",
    [`${"y".repeat(20)}b`]: "links",
  });
  for (const { fields: all, id } of [table, near])
    for (const field of all) Object.assign(field, { linkedTableId: id, options: { linkedTableId: id } });
  engine.source.add(table, [
    sourceRecord("rec1", { fld0: ["rec1"], fld1: ["rec1"], fld2: ["rec1"], fld3: "1" }),
  ]);
  engine.source.add(near, [sourceRecord("rec2", { fld0: ["rec2"], fld1: ["rec2"] })]);
  const { replica } = engine.replica;
  const views = async () => {
    await applyLinkViews(replica, engine.input().epoch, true);
    const rows = await replica.sql<
      { name: string }[]
    >`select name from public_swap._link_views order by name`;
    for (const { name } of rows)
      expect(await replica.sql`select "position" from public.${replica.sql(name)}`).toHaveLength(1);
    return rows.length;
  };
  await completes(engine);
  expect(await views()).toBe(5);
  Object.assign(table.fields[3]!, { type: "number", sourceType: "number" });
  await completes(engine);
  expect(await views()).toBe(5);
  table.name = "Results of the survey of the satisfaction of customers";
  await completes(engine);
  expect(await views()).toBe(5);
});

test("names that Basetide uses for a moment, or derives from ids, may be the customer's", async () => {
  const engine = await testEngine();
  const sql = sqlOf(engine);
  const { replica } = engine.replica;
  await sql.unsafe(`
    create table public."tblP" (id int); create table public."_tblP" (id int); create type public."tblQ" as enum ('a');
    create table public."_tblP_pkey" (id int); create sequence public."_tblQ_pkey";
    create table public."_tblP_fld0_idx" (id int);
    create table public._renaming_0 (id int); create domain public._renaming_1 as int; create view public._going_1 as select 1;
    create table public.__sync_meta (id int); create table public.___sync_meta__ (id int); create type public.__sync_issues as enum ('a');
    create function public.people(text) returns text language sql as 'select $1';
    create aggregate public.places(text) (sfunc = pg_catalog.textcat, stype = text);
    create operator public.=== (leftarg = int, rightarg = int, procedure = pg_catalog.int4eq)`);
  for (const [id, name] of [
    ["tblP", "People"],
    ["tblQ", "Places"],
  ] as const)
    engine.source.add(sourceTable(id, name, { Name: "text", Other: "links" }), [
      sourceRecord("rec1", { fld0: "1" }),
    ]);
  await completes(engine);
  const { epoch } = engine.input();
  const wanted = [{ tableId: "tblP", fieldId: "fld0", kind: "default" as const }];
  expect(await applyIndexes(replica, epoch, wanted)).toBe(true);
  expect(await applyIndexes(replica, epoch, wanted)).toBe(true);
  const indexes = () => sql`select from pg_indexes where schemaname = 'public' and indexdef ~ '\\(name\\)'`;
  expect(await indexes()).toHaveLength(1);
  await applyLinkViews(replica, epoch, true);
  // The two tables exchange their names, and so do two fields.
  const [people, places] = engine.source.tables.map(({ table }) => table);
  [people!.name, places!.name] = ["Places", "People"];
  [people!.fields[0]!.name, people!.fields[1]!.name] = ["Other", "Name"];
  await completes(engine);
  expect(await tableNames(engine)).toEqual({ tblP: "places", tblQ: "people" });
  retype(engine);
  await completes(engine);
  expect(await applyIndexes(replica, epoch, wanted)).toBe(true);
  expect(await sql`select from public._sync_issues`).toEqual([]);
});

test("a column of the table's row type, an identity column and an index stop no change of a type", async () => {
  const engine = await testEngine();
  const sql = sqlOf(engine);
  engine.source.add(sourceTable("tblP", "People", { Name: "text" }), [sourceRecord("rec1", { fld0: "1" })]);
  await completes(engine);
  await sql.unsafe(`alter table public.people add column number int generated by default as identity;
    create index _tbl on public.people (number); create table public.users (person public.people)`);
  for (const type of ["number", "text", "number", "text"] as const) {
    retype(engine, 0, type);
    await completes(engine);
    expect(await sql`select number from public.people`).toEqual([{ number: 1 }]);
  }
});

/** Ends of names that share their beginnings, and names that Postgres or Basetide derive. */
const stems = [
  "orders",
  "x".repeat(62),
  "x".repeat(63),
  "я".repeat(31),
  "表".repeat(21),
  "tblA",
  "count",
  "_a",
];
const hostile = fc.oneof(
  fc.constantFrom(
    ...stems.flatMap((stem) => [stem, `_${stem}`, `__${stem}`, `${stem}_2`, `_${stem}_pkey`, `${stem}_pkey`]),
    "_tblA_pkey",
    "_tblB_pkey",
    "_tblA_fld0_idx",
    "_renaming_0",
    "_renaming_1",
    "_gone_0",
    "_going_1",
    "__sync_meta",
    "_kept_1",
    "orders__links",
    "_orders__links",
    "orders_id_seq",
  ),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 70 }),
);
const kinds: Record<string, (name: string) => string> = {
  table: (name) => `create table public.${name} (id int)`,
  view: (name) => `create view public.${name} as select 1 as id`,
  "materialized view": (name) => `create materialized view public.${name} as select 1 as id`,
  enum: (name) => `create type public.${name} as enum ('a')`,
  composite: (name) => `create type public.${name} as (id int)`,
  range: (name) => `create type public.${name} as range (subtype = int4)`,
  domain: (name) => `create domain public.${name} as text`,
  sequence: (name) => `create sequence public.${name}`,
  function: (name) => `create function public.${name}(text) returns text language sql as 'select $1'`,
  aggregate: (name) => `create aggregate public.${name}(text) (sfunc = pg_catalog.textcat, stype = text)`,
  index: (name) => `create index ${name} on public.theirs (id)`,
};
const step = fc.record({
  object: fc.option(
    fc.record({ kind: fc.constantFrom(...Object.keys(kinds)), name: hostile, isInTheSync: fc.boolean() }),
  ),
  tables: fc.array(fc.record({ name: fc.option(hostile), isRetyped: fc.boolean() }), {
    minLength: 3,
    maxLength: 3,
  }),
});

test("through any history of names and of objects of the customer's, every sync completes", {
  timeout: 60_000 + RUNS * 15_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), async (steps) => {
      await using engine = await testEngine();
      const sql = sqlOf(engine);
      const { replica } = engine.replica;
      await sql`create table public.theirs (id int)`;
      const { epoch } = engine.input();
      await applySettings(replica, epoch, { history: true, notify: false, aliasDays: 7 });
      const ids = ["tblA", "tblB", "tblC"];
      for (const [turn, { object, tables }] of steps.entries()) {
        const create = async () => {
          engine.source.before = () => {};
          const name = `"${object!.name.replaceAll('"', '""').replaceAll("\0", "")}"`;
          // It may be taken, or no name at all.
          await sql.unsafe(kinds[object!.kind]!(name)).catch(() => {});
        };
        if (object && !object.isInTheSync) await create();
        // When the tables have their new names, and are read.
        else if (object) engine.source.before = (call) => (call.startsWith("list") ? create() : undefined);
        for (const [index, { name, isRetyped }] of tables.entries()) {
          const known = engine.source.tables[index];
          if (!known) {
            const table = sourceTable(ids[index]!, name ?? "Orders", { Name: "text", Links: "links" });
            engine.source.add(table, [sourceRecord("rec1", { fld0: "1", fld1: ["rec1"] })]);
          } else {
            if (name !== null) known.table.name = name;
            if (isRetyped) retype(engine, index, turn % 2 ? "number" : "text");
          }
        }
        await completes(engine);
        await applyLinkViews(replica, epoch, true);
        const wanted = ids.map((tableId) => ({ tableId, fieldId: "fld0", kind: "default" as const }));
        expect(await applyIndexes(replica, epoch, wanted)).toBe(true);
        const names = await tableNames(engine);
        expect(Object.keys(names).sort()).toEqual(ids);
        for (const { table } of engine.source.tables)
          if (/^[a-z]+$/.test(table.name))
            expect(names[table.id]).toContain(snakeCase(table.name).slice(0, 50));
      }
    }),
    { numRuns: RUNS },
  );
});
