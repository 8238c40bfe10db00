/**
 * The column of a deleted field is dropped in place if nothing depends on it; otherwise a new table replaces the old
 * one.
 */
import { expect, test, vi } from "vitest";
import { type Engine, testEngine } from "../../support/engine";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const PEOPLE = sourceTable("tblP", "People", { Name: "text", Size: "number", Note: "text" });
const without = (...names: string[]) => ({
  ...PEOPLE,
  fields: PEOPLE.fields.filter(({ name }) => !names.includes(name)),
});

async function synced() {
  const engine = await testEngine();
  const table = engine.source.add(
    PEOPLE,
    ["recA", "recB"].map((id) => sourceRecord(id, { fld0: id, fld1: 1, fld2: `note ${id}` })),
  );
  await engine.sync();
  return { engine, table, sql: engine.replica.replica.sql };
}
const oidOf = async ({ replica }: Engine) =>
  (await replica.replica.sql`select 'public.people'::regclass::oid::int as oid`)[0]!.oid as number;
const columnsOf = async (engine: Engine) => Object.keys((await engine.rows())[0] as object);

test("a deleted field's column is dropped, the table is not read again, and the name is free", async () => {
  const { engine, table, sql } = await synced();
  await sql`create index by_size on public.people (size)`;
  await sql`create view public.sizes as select id, size from public.people`;
  const before = await oidOf(engine);
  engine.changes.length = 0;
  table.table = without("Note");
  expect(await engine.sync()).toMatchObject({ kind: "sweep", inserted: 0, updated: 0, deleted: 0 });
  expect(await columnsOf(engine)).toEqual(["id", "created_time", "name", "size"]);
  expect(await oidOf(engine)).toBe(before);
  expect(engine.changes).toMatchObject([{ kind: "field_dropped", field: "note" }]);
  expect([...(await sql`select indexname from pg_indexes where indexname = 'by_size'`)]).toHaveLength(1);
  // It returns as another field, which gets its own values.
  table.table = {
    ...PEOPLE,
    fields: [
      ...without("Note").fields,
      { id: "fld9", name: "Note", type: "text" as const, sourceType: "text" },
    ],
  };
  for (const [id, record] of table.records) {
    const { fld2: _gone, ...fields } = record.fields;
    table.records.set(id, { ...record, fields: { ...fields, fld9: `new ${id}` } });
  }
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(await engine.rows()).toMatchObject([
    { id: "recA", name: "recA", size: 1, note: "new recA" },
    { id: "recB", name: "recB", size: 1, note: "new recB" },
  ]);
  expect(await oidOf(engine)).toBe(before);
});

test("a field that is renamed to a deleted field's name gets that name", async () => {
  const { engine, table } = await synced();
  table.table = {
    ...PEOPLE,
    fields: without("Note").fields.map((field) =>
      field.name === "Size" ? { ...field, name: "Note" } : field,
    ),
  };
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(await engine.rows()).toMatchObject([{ id: "recA", name: "recA", note: 1 }, { id: "recB" }]);
  expect(await columnsOf(engine)).toEqual(["id", "created_time", "name", "note"]);
});

test.for([
  ["an index", "create index by_note on public.people (lower(note))"],
  ["a view", "create view public.notes as select id, note from public.people"],
  ["a grant", "grant select (note) on public.people to public"],
  ["a default", "alter table public.people alter column note set default 'n'"],
  ["a table that inherits", "create table public.heirs () inherits (public.people)"],
])("a column is dropped in place with what depends on it: %s", async ([, statement]) => {
  const { engine, table, sql } = await synced();
  await sql.unsafe(statement!);
  const before = await oidOf(engine);
  table.table = without("Note");
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(await columnsOf(engine)).toEqual(["id", "created_time", "name", "size"]);
  expect(await oidOf(engine)).toBe(before);
});

test("a field that is missing from one answer of the source keeps its column", async () => {
  const { engine, table } = await synced();
  let answers = 0;
  engine.source.before = (call) => {
    table.table = call === "schema" && answers++ === 0 ? without("Note") : PEOPLE;
  };
  const before = await oidOf(engine);
  expect(await engine.sync()).not.toHaveProperty("error");
  expect(answers).toBeGreaterThan(0);
  expect(await oidOf(engine)).toBe(before);
  expect(await engine.rows()).toMatchObject([{ note: "note recA" }, { note: "note recB" }]);
});
