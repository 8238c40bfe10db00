/**
 * An event trigger of the customer's that refuses changes of tables stops no row of any table, in any mode. What it
 * refuses is reported, and is done as soon as it may be.
 */
import { expect, test, vi } from "vitest";
import type { FieldType } from "../../../core/source";
import { asAdmin, superuserUrl } from "../../support/admin";
import { type Engine, testEngine } from "../../support/engine";
import { editor } from "../../support/fake-feed";
import { liveEngine } from "../../support/live-engine";
import { until } from "../../support/poll";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 90_000 });

type Sourced = Pick<Engine, "source" | "replica">;

const field = (id: string, name: string, type: FieldType = "text") => ({ id, name, type, sourceType: type });

function addTables({ source }: Sourced) {
  const people = source.add(sourceTable("tblP", "People", { Name: "text", Age: "text", Old: "text" }), [
    sourceRecord("rec1", { fld0: "Ada", fld1: "36", fld2: "x" }),
  ]);
  const places = source.add(sourceTable("tblQ", "Places", { Name: "text" }), [
    sourceRecord("recQ", { fld0: "v0" }),
  ]);
  return { people, places };
}

/** Refuses all DDL of the service, as companies do for audited databases. */
async function guard({ replica }: Sourced): Promise<void> {
  await asAdmin(
    (sql) =>
      sql.unsafe(`create schema app; create function app.guard() returns event_trigger language plpgsql as
        $$ begin raise exception '% needs a ticket', tg_tag; end $$;
        create event trigger guard on ddl_command_start execute function app.guard()`),
    superuserUrl(replica.ownerUrl),
  );
}

const unguard = ({ replica }: Sourced) =>
  asAdmin((sql) => sql`drop event trigger guard`.simple(), superuserUrl(replica.ownerUrl));

const REFUSAL = /function app\.guard\(\), which an event trigger calls, refuses .* needs a ticket/s;

type Tables = ReturnType<typeof addTables>;
const CHANGES: [string, (tables: Tables, engine: Sourced) => void, RegExp][] = [
  [
    "a new field",
    ({ people }) => people.table.fields.push(field("fld9", "Priority")),
    /New columns \(priority\) of the table people/,
  ],
  ["a deleted field", ({ people }) => people.table.fields.pop(), /alter table|people/],
  ["a renamed field", ({ people }) => (people.table.fields[0]!.name = "Full name"), /rename column "name"/],
  [
    "a renamed table",
    ({ people }) => (people.table.name = "Persons"),
    /alter table "public"\."people" rename/,
  ],
  [
    "a field of another type",
    ({ people }) => {
      Object.assign(people.table.fields[1]!, field("fld1", "Age", "number"));
      people.records.get("rec1")!.fields.fld1 = 36;
    },
    /table people cannot be changed/,
  ],
  [
    "a new table",
    (_, { source }) =>
      source.add(sourceTable("tblN", "News", { Name: "text" }), [sourceRecord("recN", { fld0: "n" })]),
    /table news cannot be created/,
  ],
];

test.each(CHANGES)("sweeps: rows of all tables follow while %s is refused", async (_, change, words) => {
  const engine = await testEngine();
  const tables = addTables(engine);
  const { people, places } = tables;
  await engine.sync();
  await guard(engine);
  change(tables, engine);
  for (const turn of ["1", "2", "3"]) {
    people.records.get("rec1")!.fields.fld2 = `x${turn}`;
    people.records.get("rec1")!.fields.fld0 = `Ada ${turn}`;
    places.records.get("recQ")!.fields.fld0 = `v${turn}`;
    people.records.set(`recP${turn}`, sourceRecord(`recP${turn}`, { fld0: "new" }));
    const { error, failing } = await engine.sync();
    // A table that does not exist yet fails by itself.
    const told = error ?? failing?.[0];
    expect(told).toMatchObject({ code: "replica_refused", message: expect.stringMatching(REFUSAL) });
    expect(told!.message).toMatch(words);
    const [first, ...others] = await engine.rows("people");
    expect(first).toMatchObject({ name: `Ada ${turn}` });
    expect(others).toHaveLength(Number(turn));
    expect(await engine.rows("places")).toMatchObject([{ name: `v${turn}` }]);
  }
  await unguard(engine);
  // As if half a minute had passed since the last attempt at a rebuild.
  for (const refusal of engine.cache.refusals.values()) refusal.until = 0;
  expect((await engine.sync()).error).toBe(undefined);
});

const NEEDS =
  /New columns \(more\) of the table people .*alter table public\.people rename column more to (more_\w+)/s;

test("sweeps: a table that cannot be changed needs attention by itself, is not read for it, and changes once it can", async () => {
  const engine = await testEngine();
  const { people, places } = addTables(engine);
  const { sql } = engine.replica.replica;
  await engine.sync();
  await sql`alter table public.people add column more int`;
  people.table.fields.push(field("fld9", "More"));
  people.records.get("rec1")!.fields.fld9 = "m";
  engine.source.calls.length = 0;
  for (const turn of ["1", "2"]) {
    people.records.get("rec1")!.fields.fld0 = `Ada ${turn}`;
    places.records.get("recQ")!.fields.fld0 = `v${turn}`;
    const report = await engine.sync();
    expect(report).toMatchObject({
      completedAt: expect.any(Date),
      failing: [{ table_id: "tblP", name: "People" }],
    });
    expect(report.error).toBe(undefined);
    expect(report.failing![0]).toMatchObject({
      code: "needs_attention",
      message: expect.stringMatching(NEEDS),
    });
    expect(await engine.rows("people")).toMatchObject([{ name: `Ada ${turn}` }]);
    expect(await engine.rows("places")).toMatchObject([{ name: `v${turn}` }]);
  }
  expect(engine.source.calls.filter((call) => call === "list tblP 0")).toHaveLength(2);
  const { message } = (await engine.sync()).failing![0]!;
  await sql.unsafe(message.slice(message.lastIndexOf("alter table"), message.lastIndexOf(".")));
  for (const refusal of engine.cache.refusals.values()) refusal.until = 0;
  expect((await engine.sync()).failing).toBe(undefined);
  expect(await engine.rows("people")).toMatchObject([{ more: "m" }]);
});

test("sweeps: a field that is renamed to a column of the customer's changes once that has another name", async () => {
  const engine = await testEngine();
  const { people, places } = addTables(engine);
  const { sql } = engine.replica.replica;
  await engine.sync();
  await sql`alter table public.people add column full_name text default 'mine'`;
  people.table.fields[0]!.name = "Full name";
  const remedy =
    /the new column full_name .*: (alter table public\.people rename column full_name to full_name_mine)/;
  const shown = async (turn: string) => {
    people.records.get("rec1")!.fields.fld0 = `Ada ${turn}`;
    places.records.get("recQ")!.fields.fld0 = `v${turn}`;
    const report = await engine.sync();
    expect(await engine.rows("people")).toMatchObject([{ name: `Ada ${turn}`, full_name: "mine" }]);
    expect(await engine.rows("places")).toMatchObject([{ name: `v${turn}` }]);
    return report;
  };
  expect((await shown("1")).error).toMatchObject({
    code: "replica_refused",
    message: expect.stringMatching(remedy),
  });
  // Together with a change that needs the cells.
  people.table.fields.push(field("fld9", "More"));
  const { failing } = await shown("2");
  expect(failing).toMatchObject([
    { table_id: "tblP", code: "needs_attention", message: expect.stringMatching(remedy) },
  ]);
  await sql.unsafe(remedy.exec(failing![0]!.message)![1]!);
  for (const refusal of engine.cache.refusals.values()) refusal.until = 0;
  await until(async () => (await engine.sync()).error === undefined, { what: "the table has changed" });
  expect(await engine.rows("people")).toMatchObject([
    { full_name: "Ada 2", full_name_mine: "mine", more: null },
  ]);
});

test("live: a table that cannot be changed needs attention by itself, and its rows follow", async () => {
  const engine = await liveEngine();
  const { people } = addTables(engine);
  const { sql } = engine.replica.replica;
  await engine.sync();
  await sql`alter table public.people drop constraint "_tblP_pkey"`;
  people.table.fields.push(field("fld9", "More"));
  people.records.get("rec1")!.fields.fld9 = "m";
  engine.cache.schemaCheckRequestedAt = new Date();
  engine.start();
  const { failing } = engine.cache;
  await until(async () => failing.list().length > 0, { what: "the table needs attention" });
  expect(failing.list()).toMatchObject([{ table_id: "tblP", code: "needs_attention" }]);
  expect(engine.runs.flatMap(({ error }) => error ?? [])).toEqual([]);
  const edits = editor(engine.webhook, { source: engine.source, table: people });
  edits.put(sourceRecord("rec1", { ...people.records.get("rec1")!.fields, fld0: "Bob" }));
  const name = async () => ((await engine.rows("people")) as { name: string }[])[0]!.name;
  await until(async () => (await name()) === "Bob", { what: "its rows follow", timeoutMs: 20_000 });
});

test("sweeps: a table that may not be dropped stays, and the rows of the others follow", async () => {
  const engine = await testEngine();
  const { places } = addTables(engine);
  await engine.sync();
  await guard(engine);
  engine.source.tables.shift();
  places.records.get("recQ")!.fields.fld0 = "v1";
  expect((await engine.sync()).error).toMatchObject({
    code: "replica_refused",
    message: expect.stringMatching(REFUSAL),
  });
  expect(await engine.rows("places")).toMatchObject([{ name: "v1" }]);
  await unguard(engine);
  expect((await engine.sync()).error).toBe(undefined);
  await expect(engine.rows("people")).rejects.toMatchObject({ code: "42P01" });
});

test("sweeps: another worker can take over the base meanwhile", async () => {
  const engine = await testEngine();
  const { people } = addTables(engine);
  await engine.sync();
  people.table.fields.push(field("fld9", "Priority"));
  // A build of a lease that has ended.
  await asAdmin((sql) => sql`create table public_swap."tblX" ()`, engine.replica.ownerUrl);
  await guard(engine);
  await engine.restart();
  people.records.get("rec1")!.fields.fld0 = "Bob";
  expect((await engine.sync()).error).toMatchObject({ code: "replica_refused" });
  expect(await engine.rows("people")).toMatchObject([{ name: "Bob" }]);
});

test.each(CHANGES)(
  "live: rows of all tables follow while %s is refused, which is reported",
  async (_, change, words) => {
    const engine = await liveEngine();
    const tables = addTables(engine);
    await engine.sync();
    await guard(engine);
    change(tables, engine);
    engine.cache.schemaCheckRequestedAt = new Date();
    engine.start();
    const reported = () =>
      engine.runs.some(({ error }) => error?.code === "replica_refused" && words.test(error.message));
    await until(reported, { what: "the refusal is reported" });
    const people = editor(engine.webhook, { source: engine.source, table: tables.people });
    const places = editor(engine.webhook, { source: engine.source, table: tables.places });
    for (const turn of ["1", "2", "3"]) {
      people.put(sourceRecord("rec1", { ...tables.people.records.get("rec1")!.fields, fld0: `Ada ${turn}` }));
      places.put(sourceRecord("recQ", { fld0: `v${turn}` }));
      await until(
        async () => {
          const [person] = (await engine.rows("people")) as { name: string }[];
          const [place] = (await engine.rows("places")) as { name: string }[];
          return person!.name === `Ada ${turn}` && place!.name === `v${turn}`;
        },
        { what: `turn ${turn} is in SQL`, timeoutMs: 20_000 },
      );
    }
    await unguard(engine);
  },
);
