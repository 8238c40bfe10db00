/** The source's schema changes, also during reads: nothing is lost, rewritten in vain, or visible by half. */
import { expect, test } from "vitest";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  recordRowImage,
  takeReadVersion,
} from "../../../core/replica";
import type { SourceRecord, SourceTable } from "../../../core/source";
import { type Engine, testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

/** Three pages. */
const MANY = 250;
const idOf = (index: number) => `rec${String(index).padStart(5, "0")}`;

function things(): { table: SourceTable; records: SourceRecord[] } {
  const records = Array.from({ length: MANY }, (_, index) =>
    sourceRecord(idOf(index), { fld0: `Thing ${index}`, fld1: index }),
  );
  return { table: sourceTable("tblT", "Things", { Name: "text", Count: "number" }), records };
}

/** Where each table's rows are stored: another file means that they were rewritten. */
async function files({ replica }: Engine): Promise<Record<string, number>> {
  const rows = await replica.replica.sql<{ name: string; file: number }[]>`
    select relname as name, relfilenode as file from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ '^_'`;
  return Object.fromEntries(rows.map(({ name, file }) => [name, file]));
}

const column = async (engine: Engine, name: string, table = "things") =>
  (await engine.rows(table)).map((row) => (row as Record<string, unknown>)[name]);

const kinds = (engine: Engine) => engine.changes.map(({ kind, table, field }) => [kind, table, field]);

test("a renamed field is renamed at once, even if another field causes a rebuild of its table", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  engine.source.add(table, records);
  await engine.sync();
  table.fields[1]!.name = "Amount";
  table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
  engine.changes.length = 0;
  await using reader = readerOf(engine.replica.readerUrl);
  engine.source.before = async (call) => {
    if (call !== "list tblT 0") return;
    // Before a record has been read for the rebuild.
    expect(await reader`select sum(amount)::int as sum from things`).toEqual([
      { sum: (MANY * (MANY - 1)) / 2 },
    ]);
  };
  await engine.sync();
  expect(kinds(engine)).toEqual([
    ["field_renamed", "things", "amount"],
    ["field_added", "things", "new"],
  ]);
  expect(await column(engine, "amount")).toEqual(records.map((record) => record.fields.fld1));
});

test("a column takes the name of a deleted field, and no record is read again for it", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  engine.source.add(table, records);
  await engine.sync();
  // Name is deleted, and Count takes its name.
  table.fields.splice(0, 1);
  table.fields[0]!.name = "Name";
  engine.changes.length = 0;
  await engine.sync();
  expect(kinds(engine)).toEqual([
    ["field_dropped", "things", "name"],
    ["field_renamed", "things", "name"],
  ]);
  expect((await engine.rows("things"))[3]).toEqual({
    id: idOf(3),
    created_time: "2024-05-01T12:34:56",
    name: 3,
  });
});

test("a new order of fields, descriptions, and types that are stored alike rewrite no row", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  engine.source.add(table, records);
  await engine.sync();
  const before = await files(engine);
  engine.changes.length = 0;
  table.fields.reverse();
  await engine.sync();
  expect(engine.changes).toEqual([]);
  table.fields[0] = {
    ...table.fields[0]!,
    description: "How many",
    type: "currency",
    sourceType: "currency",
  };
  await engine.sync();
  expect(kinds(engine)).toEqual([["field_retyped", "things", "count"]]);
  expect(await files(engine)).toEqual(before);
});

test("a field that is retyped and retyped back ends as it was", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  const before = await engine.rows("things");
  const retype = (type: "text" | "number") => {
    table.fields[1] = { ...table.fields[1]!, type, sourceType: type };
    for (const record of live.values()) {
      record.fields.fld1 = type === "text" ? `${record.fields.fld1}` : Number(record.fields.fld1);
    }
  };
  retype("text");
  await engine.sync();
  expect(await column(engine, "count")).toEqual(records.map((_, index) => String(index)));
  retype("number");
  await engine.sync();
  expect(await engine.rows("things")).toEqual(before);
  // Between two schema checks: no check sees it.
  retype("text");
  retype("number");
  engine.changes.length = 0;
  await engine.sync();
  expect(engine.changes).toEqual([]);
});

test("a field that is added during a sweep gets all its cells, without waiting for the next schema check", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  engine.source.before = (call) => {
    if (call !== "list tblT 100" || table.fields.length > 2) return;
    table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
    for (const [index, record] of [...live.values()].entries()) record.fields.fld2 = `new ${index}`;
  };
  const report = await engine.sync({ schemaPollMs: 3_600_000 });
  expect(report).toMatchObject({ kind: "first", completedAt: expect.any(Date) });
  expect(await column(engine, "new")).toEqual(records.map((_, index) => `new ${index}`));
});

test("I6: a field that is retyped during a sweep does not empty its column", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  const nulls: unknown[] = [];
  engine.source.before = async (call) => {
    nulls.push((await reader`select count(*)::int as n from things where count is null`)[0]!.n);
    if (call !== "list tblT 100" || table.fields[1]!.type === "text") return;
    table.fields[1] = { ...table.fields[1]!, type: "text", sourceType: "text" };
    for (const record of live.values()) record.fields.fld1 = `${record.fields.fld1} pieces`;
  };
  await engine.sync({ schemaPollMs: 3_600_000 });
  expect(new Set(nulls)).toEqual(new Set([0]));
  expect(await column(engine, "count")).toEqual(records.map((_, index) => `${index} pieces`));
});

test.each([
  ["between two pages", "list tblT 100"],
  // A record that was not listed is requested beside one that was.
  ["before the missing records are requested", "ids tblT"],
])("I6: a field deleted in a sweep, %s, does not empty its column row by row", async (_, moment) => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  live.delete(idOf(7));
  await using reader = readerOf(engine.replica.readerUrl);
  const empty: unknown[] = [];
  engine.source.before = async (call) => {
    const rows =
      await reader`select count(*) filter (where (to_jsonb(t) -> 'count') = 'null')::int as n from things as t`;
    empty.push(rows[0]!.n);
    if (call !== moment || table.fields.length === 1) return;
    table.fields.splice(1, 1);
    for (const record of live.values()) delete record.fields.fld1;
  };
  await engine.sync({ schemaPollMs: 3_600_000 });
  expect(new Set(empty)).toEqual(new Set([0]));
  expect(Object.keys((await engine.rows("things"))[0] as object)).toEqual(["id", "created_time", "name"]);
});

test("a table whose records change all the time costs one schema check, not one per sweep", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  const looks = () => engine.source.calls.filter((call) => call === "schema").length;
  const before = looks();
  for (let sweep = 1; sweep <= 4; sweep++) {
    for (const record of live.values()) record.fields.fld1 = Number(record.fields.fld1) + 1;
    await engine.sync({ schemaPollMs: 3_600_000 });
  }
  expect(looks() - before).toBe(1);
  expect((await engine.rows("things"))[7]).toMatchObject({ count: 11 });
});

test("a field that records have and the schema lacks costs one schema check, and stops nothing", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  for (const index of [1, 120, 220]) live.get(idOf(index))!.fields.fldHidden = "?";
  expect(await engine.sync({ schemaPollMs: 3_600_000 })).toMatchObject({ completedAt: expect.any(Date) });
  expect(await engine.sync({ schemaPollMs: 3_600_000 })).toMatchObject({
    completedAt: expect.any(Date),
    requests: 3,
  });
  expect(engine.source.calls.filter((call) => call === "schema")).toHaveLength(3);
});

test("I6: a table whose schema changes during its rebuild never goes live with a partly filled column", async () => {
  for (const change of ["drop", "add", "retype"] as const) {
    const engine = await testEngine();
    const { table, records } = things();
    const { records: live } = engine.source.add(table, records);
    await engine.sync();
    await using reader = readerOf(engine.replica.readerUrl);
    const partly: string[] = [];
    let changes = 0;
    engine.source.before = async (call) => {
      const [row] = await reader<{ all: number; filled: number[] }[]>`
        select count(*)::int as all, array(
          select count(v.value)::int from things as t, jsonb_each_text(to_jsonb(t)) as v group by v.key) as filled
        from things`;
      if (row!.filled.some((filled) => filled !== 0 && filled !== row!.all)) partly.push(`${change} ${call}`);
      if (call !== "list tblT 200" || changes++ > 0) return;
      if (change === "drop") {
        table.fields.splice(1, 1);
        for (const record of live.values()) delete record.fields.fld1;
      } else if (change === "add") {
        table.fields.push({ id: "fld3", name: "Late", type: "text", sourceType: "text" });
        for (const record of live.values()) record.fields.fld3 = "late";
      } else {
        table.fields[1] = { ...table.fields[1]!, type: "checkbox", sourceType: "checkbox" };
        for (const record of live.values()) record.fields.fld1 = true;
      }
    };
    table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
    expect(await engine.sync()).toMatchObject({ completedAt: expect.any(Date) });
    expect(partly).toEqual([]);
    const wanted = { drop: { new: null }, add: { count: 7, late: "late" }, retype: { count: true } }[change];
    expect((await engine.rows("things"))[7]).toMatchObject(wanted);
    if (change === "drop") expect((await engine.rows("things"))[7]).not.toHaveProperty("count");
  }
});

test("I6: a write that was requested before a field was added leaves no gap in the rebuilt column", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  const { replica } = engine.replica;
  const known = (await loadCatalog(replica)).get("tblT")!;
  const [asked, written] = [await takeReadVersion(replica), structuredClone(live.get(idOf(3))!)];
  table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
  for (const record of live.values()) record.fields.fld2 = "new";
  engine.source.before = async (call) => {
    if (call !== "list tblT 100") return;
    const rows = mapRecords(compileMapper(known.spec), [written], []);
    const image = { epoch: null, readVersion: asked, rows, gone: [], issues: [], records: [written] };
    expect((await applyRowImages(replica, known, image)).lost).toEqual([]);
  };
  await engine.sync();
  expect(await column(engine, "new")).toEqual(records.map(() => "new"));
  expect(engine.source.calls.filter((call) => call.startsWith("ids"))).toHaveLength(1);
});

test("a table that is renamed during its rebuild goes live under its new names", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  records[9]!.fields.fld1 = "not a number";
  engine.source.add(table, records);
  await engine.sync();
  table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
  engine.source.before = (call) => {
    if (call !== "list tblT 200") return;
    table.name = "Items";
    table.fields[1]!.name = "Amount";
  };
  const lists = engine.source.calls.length;
  await engine.sync();
  expect(engine.source.calls.slice(lists).filter((call) => call === "list tblT 0")).toHaveLength(1);
  expect((await engine.rows("items"))[7]).toMatchObject({ name: "Thing 7", amount: 7, new: null });
  const issues = await engine.replica.replica.sql`select table_name, field from public._sync_issues`;
  expect(issues).toMatchObject([{ table_name: "items", field: "amount" }]);
});

test("a rename during a sweep is visible before the sweep ends, and the sweep continues", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  const before = await files(engine);
  await using reader = readerOf(engine.replica.readerUrl);
  const names: string[] = [];
  let lists = 0;
  engine.source.before = async (call) => {
    if (call.startsWith("list")) lists++;
    if (call === "list tblT 100") {
      table.fields[1]!.name = "Amount";
      live.get(idOf(220))!.fields.fld1 = -1;
      engine.cache.schemaCheckRequestedAt = new Date(1234);
    }
    if (call === "list tblT 200") {
      const rows =
        await reader`select column_name as name from information_schema.columns where table_name = 'things'`;
      names.push(...rows.map((row) => row.name as string));
    }
  };
  await engine.sync({ schemaPollMs: 3_600_000 });
  // The page was requested while its predecessor was processed: the schema check came with that one.
  expect(engine.looks).toEqual([new Date(1234)]);
  expect(engine.cache.schemaCheckRequestedAt).toBeNull();
  expect(lists).toBe(3);
  expect(await column(engine, "amount")).toEqual([...live.values()].map((record) => record.fields.fld1));
  expect(await files(engine)).toEqual(before);
});

test("a table that is deleted while it is read is dropped, and the sync of the others completes", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  engine.source.add(sourceTable("tblO", "Other", { Name: "text" }), [sourceRecord("rec1", { fld0: "kept" })]);
  engine.source.add(table, records);
  await engine.sync();
  engine.source.before = (call) => {
    if (call === "list tblT 100") engine.source.tables.splice(1, 1);
  };
  expect(await engine.sync({ schemaPollMs: 3_600_000 })).toMatchObject({
    completedAt: expect.any(Date),
    tables: [{ name: "other", records: 1 }],
  });
  expect(Object.keys(await files(engine))).toEqual(["other"]);
});

test("a query that locks one table for long delays neither renames of the others nor the end of the sync", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const other = sourceTable("tblO", "Other", { Name: "text" });
  const { records: live } = engine.source.add(table, records);
  engine.source.add(other, [sourceRecord("rec1", { fld0: "x" })]);
  await engine.sync();
  table.name = "Items";
  other.name = "Others";
  await using reader = readerOf(engine.replica.readerUrl);
  await reader.begin(async (query) => {
    await query`select count(*) from things`;
    live.get(idOf(3))!.fields.fld1 = 3000;
    expect(await engine.sync()).toMatchObject({ completedAt: expect.any(Date), updated: 1 });
    expect(await engine.rows("others")).toMatchObject([{ name: "x" }]);
    expect((await query`select count::int from things where id = ${idOf(3)}`)[0]).toEqual({ count: 3000 });
  });
  await engine.sync();
  expect((await engine.rows("items"))[3]).toMatchObject({ count: 3000 });
});

test("changes of many kinds are logged with the state before and after", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  engine.source.add(table, records.slice(0, 3));
  await engine.sync();
  expect(engine.changes).toEqual([
    {
      kind: "table_added",
      table: "things",
      field: null,
      before: null,
      after: { source_name: "Things", name: "things" },
    },
  ]);
  engine.changes.length = 0;
  table.fields[0]!.name = "Title";
  table.fields[1] = { ...table.fields[1]!, type: "text", sourceType: "singleLineText" };
  await engine.sync();
  const types = { source_type: "text", type: "text" };
  expect(engine.changes).toEqual([
    {
      kind: "field_renamed",
      table: "things",
      field: "title",
      before: { source_name: "Name", name: "name", ...types },
      after: { source_name: "Title", name: "title", ...types },
    },
    {
      kind: "field_retyped",
      table: "things",
      field: "count",
      before: { source_name: "Count", name: "count", source_type: "number", type: "numeric" },
      after: { source_name: "Count", name: "count", source_type: "singleLineText", type: "text" },
    },
  ]);
  engine.changes.length = 0;
  engine.source.tables.splice(0, 1);
  // The last table: an answer without any is believed once it has lasted.
  await until(async () => (await engine.sync()) && engine.changes.length > 0, {
    what: "the table is dropped",
  });
  expect(kinds(engine)).toEqual([["table_dropped", "things", null]]);
});

/** Fields that are retyped between two requests of a sync, to text and back, with the cells of each type. */
function flipping(live: Map<string, SourceRecord>, table: SourceTable, at = 1) {
  const { id, type, sourceType } = table.fields[at]!;
  const cells = new Map([...live.values()].map((record) => [record.id, record.fields[id]]));
  const to = (isText: boolean) => {
    table.fields[at] = { ...table.fields[at]!, ...(isText ? TEXT : { type, sourceType }) };
    for (const record of live.values()) {
      const cell = cells.get(record.id);
      record.fields[id] = isText ? `${JSON.stringify(cell)} pieces` : cell;
    }
  };
  return { toText: () => to(true), back: () => to(false) };
}

const TEXT = { type: "text", sourceType: "text" } as const;

/** Makes Postgres refuse to write a NULL into the live table's column. */
async function neverNull({ replica }: Engine, name = "count"): Promise<void> {
  await replica.replica.sql.unsafe(
    `alter table public.things add constraint filled check ("${name}" is not null)`,
  );
}

/** Does something before each request of this kind, once each, in this order. */
function before(engine: Engine, steps: [call: string, happen: () => void | Promise<void>][]): void {
  const left = [...steps];
  engine.source.before = async (call) => {
    if (left[0]?.[0] === call) await left.shift()![1]();
  };
}

test.each<["number" | "rollup" | "barcode" | "checkbox" | "date", (index: number) => unknown, unknown]>([
  ["number", (index) => index, 7],
  ["checkbox", () => true, true],
  ["date", () => "2024-01-07", "2024-01-07"],
  // Their cells may fail to fit without a change of the schema.
  ["rollup", (index) => index, 7],
  ["barcode", (index) => ({ text: String(index) }), 7],
])(
  "I6: a %s field that is retyped and retyped back before the schema check keeps its values",
  async (type, cellOf, shown) => {
    const engine = await testEngine();
    const { table, records } = things();
    table.fields[1] = { ...table.fields[1]!, type, sourceType: type };
    for (const [index, record] of records.entries()) record.fields.fld1 = cellOf(index);
    const { records: live } = engine.source.add(table, records);
    await engine.sync();
    await neverNull(engine);
    const { toText, back } = flipping(live, table);
    live.get(idOf(107))!.fields.fld0 = "Renamed";
    before(engine, [
      ["list tblT 100", toText],
      ["schema", back],
    ]);
    engine.changes.length = 0;
    expect((await engine.sync({ schemaPollMs: 3_600_000 })).error).toBeUndefined();
    expect((await engine.rows("things"))[7]).toMatchObject({ count: shown });
    expect((await engine.rows("things"))[107]).toMatchObject({ name: "Renamed" });
    expect(engine.changes).toEqual([]);
  },
);

test("I6: a field that is retyped three times around one schema check, and stays so, does not empty its column", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  await neverNull(engine);
  const { toText, back } = flipping(live, table);
  before(engine, [
    ["list tblT 100", toText],
    ["schema", back],
    ["ids tblT", toText],
  ]);
  expect((await engine.sync({ schemaPollMs: 3_600_000 })).error).toBeUndefined();
  expect(await column(engine, "count")).toEqual(records.map((_, index) => `${index} pieces`));
});

test("cells that fit no column cost two schema checks and one more read for each column of a sync", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  for (const index of [7, 107, 207]) live.get(idOf(index))!.fields.fld1 = "many";
  const calls = engine.source.calls.length;
  expect((await engine.sync({ schemaPollMs: 3_600_000 })).error).toBeUndefined();
  const made = engine.source.calls.slice(calls);
  expect(made.filter((call) => call === "schema")).toHaveLength(2);
  expect(made.filter((call) => call === "ids tblT")).toHaveLength(1);
  const issues = await engine.replica.replica.sql`
    select record_id as id, value from public._sync_issues order by 1`;
  expect(issues).toEqual([7, 107, 207].map((index) => ({ id: idOf(index), value: '"many"' })));
  expect((await column(engine, "count")).slice(6, 9)).toEqual([6, null, 8]);
  // Once they are known, they cost nothing: the next sync compares what this one wrote.
  await engine.sync({ schemaPollMs: 3_600_000 });
  const known = engine.source.calls.length;
  await engine.sync({ schemaPollMs: 3_600_000 });
  expect(engine.source.calls.slice(known)).toHaveLength(3);
});

test("a record with unexplained cells that is deleted before it is read again is deleted from SQL", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  live.get(idOf(7))!.fields.fld1 = "many";
  before(engine, [["schema", () => void live.delete(idOf(7))]]);
  expect((await engine.sync({ schemaPollMs: 3_600_000 })).error).toBeUndefined();
  await engine.sync({ schemaPollMs: 3_600_000 });
  expect(await engine.rows("things")).toHaveLength(MANY - 1);
});

test("I6: a field that is retyped and retyped back during a rebuild has all its values when the table is live", async () => {
  const engine = await testEngine();
  const { table, records } = things();
  const { records: live } = engine.source.add(table, records);
  await engine.sync();
  const { toText, back } = flipping(live, table);
  table.fields.push({ id: "fld2", name: "New", type: "text", sourceType: "text" });
  before(engine, [
    ["list tblT 100", toText],
    ["schema", back],
  ]);
  expect((await engine.sync()).error).toBeUndefined();
  expect(await column(engine, "count")).toEqual(records.map((_, index) => index));
});

test.each(["retyped and retyped back", "retyped"])(
  "I6: a logged image from before its field was %s leaves no gap in a built table",
  async (how) => {
    const engine = await testEngine();
    const { table, records } = things();
    const isBack = how !== "retyped";
    const { records: live } = engine.source.add(table, records);
    const { toText } = flipping(live, table);
    const { replica } = engine.replica;
    let schemas = 0;
    engine.source.before = async (call) => {
      if (call !== "schema" || ++schemas !== 2) return;
      // The check after the last page, and the image of a proxied write that was answered with text.
      const readVersion = await takeReadVersion(replica);
      const record = structuredClone(live.get(idOf(7))!);
      record.fields.fld1 = "7 pieces";
      expect(await recordRowImage(replica, "tblT", readVersion, record.id, record)).toBe(true);
      // After this check.
      if (!isBack) setTimeout(toText);
    };
    expect((await engine.sync()).error).toBeUndefined();
    expect(await column(engine, "count")).not.toContain(null);
    await engine.sync();
    expect(await column(engine, "count")).toEqual(
      records.map((_, index) => (isBack ? index : `${index} pieces`)),
    );
  },
);
