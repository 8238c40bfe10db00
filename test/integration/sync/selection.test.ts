/** A base of which only a part is copied: what it costs, what is stored, and what a change of the selection does. */
import pino from "pino";
import { expect, test } from "vitest";
import { applySettings, loadCatalog, READ_VIEW } from "../../../core/replica";
import type { SourceRecord, SourceSelection, SourceTable } from "../../../core/source";
import { type Engine, testEngine } from "../../support/engine";
import { readerOf } from "../../support/replica";
import { select, testHash, wholeText } from "../../support/select";
import { sourceRecord, sourceTable } from "../../support/source-records";

/** Three pages. */
const MANY = 250;
const [OMITTED, HASHED, LEFT_OUT] = ["s3cret of an omitted cell", "s3cret@example.com", "s3cret of a table"];

const idOf = (prefix: string, index: number) => `rec${prefix}${String(index).padStart(5, "0")}`;

/** Fields: Name, Mail, Notes, Open. */
function contacts(): { table: SourceTable; records: SourceRecord[] } {
  const fields = { Name: "text", Mail: "email", Notes: "long_text", Open: "checkbox" } as const;
  const table = { ...sourceTable("tblC", "Contacts", fields), views: [{ id: "viwOpen", name: "Open ones" }] };
  const records = Array.from({ length: MANY }, (_, index) =>
    sourceRecord(idOf("C", index), {
      fld0: `Contact ${index}`,
      fld1: `${index} ${HASHED}`,
      fld2: `${OMITTED} ${index}`,
      ...(index % 10 === 0 && { fld3: true }),
    }),
  );
  return { table, records };
}

function salaries(): { table: SourceTable; records: SourceRecord[] } {
  const table = sourceTable("tblS", "Salaries", { Name: "text" });
  table.fields[0]!.id = "fldS";
  const records = [sourceRecord(idOf("S", 0), { fldS: LEFT_OUT })];
  return { table: { ...table, primaryFieldId: "fldS" }, records };
}

const ofContacts = (chosen: Partial<SourceSelection["tables"][string]>): SourceSelection => ({
  newTables: "ignore",
  tables: { tblC: { copied: true, ...chosen } },
});

async function engineWith(selection: SourceSelection | null): Promise<Engine> {
  const engine = await testEngine();
  for (const { table, records } of [contacts(), salaries()]) engine.source.add(table, records);
  engine.source.views.set("viwOpen", ({ fields }) => fields.fld3 === true);
  select(engine, selection);
  return engine;
}

async function synced(engine: Engine): Promise<void> {
  expect((await engine.sync()).error).toBeUndefined();
}

async function files({ replica }: Engine): Promise<Record<string, number>> {
  const rows = await replica.replica.sql<{ name: string; file: number }[]>`
    select relname as name, relfilenode as file from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname !~ '^_'`;
  return Object.fromEntries(rows.map(({ name, file }) => [name, file]));
}

test("two of twenty tables cost a tenth of all calls, the one for the schema included", async () => {
  const engine = await testEngine();
  // Thirty-two pages of each table.
  engine.source.pageSize = 8;
  const tables = Array.from({ length: 20 }, (_, index) => {
    const table = sourceTable(`tbl${index}`, `Table ${index}`, { Name: "text" });
    const records = Array.from({ length: MANY }, (_record, nth) =>
      sourceRecord(idOf(String(index), nth), { fld0: `Row ${nth}` }),
    );
    engine.source.add(table, records);
    return table.id;
  });
  const calls = async () => {
    engine.source.calls.length = 0;
    await synced(engine);
    return engine.source.calls.length;
  };
  const chosen = tables.slice(0, 2).map((id) => [id, { copied: true }]);
  select(engine, { newTables: "ignore", tables: Object.fromEntries(chosen) });
  const some = [await calls(), await calls()];
  select(engine, null);
  const all = [await calls(), await calls()];
  // The first sync of all has two tables to sweep and eighteen to build.
  for (const index of [0, 1]) expect(some[index]! / all[index]! / (2 / 20)).toBeLessThan(1.05);
  expect(some[1]).toBeGreaterThanOrEqual(64);
});

test("what is omitted, hashed or left out is nowhere: not in rows, logs, history, issues or any other table", async () => {
  const engine = await engineWith(ofContacts({ fields: { fld1: "hashed", fld2: "omitted" } }));
  const logged: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void logged.push(line) });
  const input = engine.input.bind(engine);
  engine.input = (options) => {
    const made = input(options);
    return { ...made, reader: { ...made.reader, log } };
  };
  await applySettings(engine.replica.replica, engine.replica.epoch, { history: true, notify: true });
  await synced(engine);
  const [contactsTable] = engine.source.tables;
  for (const [id, record] of contactsTable!.records) {
    const fields = { ...record.fields, fld1: `new ${record.fields.fld1}`, fld2: `new ${record.fields.fld2}` };
    contactsTable!.records.set(id, { ...record, fields });
  }
  await synced(engine);
  const rows = (await engine.rows("contacts")) as Record<string, unknown>[];
  expect(rows).toHaveLength(MANY);
  expect(Object.keys(rows[0]!)).toEqual(["id", "created_time", "name", "mail", "open"]);
  expect(rows[7]).toMatchObject({ name: "Contact 7", mail: testHash(`new 7 ${HASHED}`) });
  const text = await wholeText(engine.replica.replica.sql);
  // The search sees the rows and the history of changed hashes.
  expect(text).toContain("Contact 7");
  expect(text).toContain(testHash(`7 ${HASHED}`));
  for (const secret of ["s3cret", "Salaries", "Notes"]) expect(text).not.toContain(secret);
  expect(logged.join("")).not.toContain("s3cret");
});

test("a change rebuilds only what it must, and a reader finds the table complete at any time", async () => {
  const engine = await engineWith(null);
  await synced(engine);
  const before = await files(engine);
  await using reader = readerOf(engine.replica.readerUrl);
  engine.source.before = async () => {
    expect(await reader`select count(*)::int as count from contacts`).toEqual([{ count: MANY }]);
  };
  const change = async (selection: SourceSelection | null) => {
    select(engine, selection);
    engine.changes.length = 0;
    await synced(engine);
    return engine.changes.map(({ kind, table, field }) => [kind, table, field]);
  };
  const everyTable = (fields: Record<string, "omitted" | "hashed">): SourceSelection => ({
    newTables: "copy",
    tables: { tblC: { copied: true, fields } },
  });
  const column = async (name: string) =>
    ((await engine.rows("contacts")) as Record<string, unknown>[]).map((row) => row[name]);
  const plain = contacts().records.map(({ fields }) => fields);

  expect(await change(everyTable({ fld2: "omitted" }))).toEqual([["field_dropped", "contacts", "notes"]]);
  // Nothing was written again.
  expect(await files(engine)).toEqual(before);
  await change(everyTable({ fld2: "omitted", fld1: "hashed" }));
  expect(await column("mail")).toEqual(plain.map(({ fld1 }) => testHash(fld1)));
  await change(everyTable({}));
  expect(await column("mail")).toEqual(plain.map(({ fld1 }) => fld1));
  expect(await column("notes")).toEqual(plain.map(({ fld2 }) => fld2));
  expect(await change(ofContacts({}))).toEqual([["table_dropped", "salaries", null]]);
  expect(await column("notes")).toEqual(plain.map(({ fld2 }) => fld2));
  expect((await files(engine)).salaries).toBeUndefined();
  expect(await change(null)).toEqual([["table_added", "salaries", null]]);
});

test("what was recorded of cells goes when they are no longer copied as they are", async () => {
  const engine = await engineWith(null);
  await applySettings(engine.replica.replica, engine.replica.epoch, { history: true, notify: false });
  await synced(engine);
  const text = () => wholeText(engine.replica.replica.sql);
  for (const secret of [OMITTED, HASHED, LEFT_OUT]) expect(await text()).toContain(secret);
  select(engine, ofContacts({ fields: { fld1: "hashed", fld2: "omitted" } }));
  await synced(engine);
  const left = await text();
  expect(left).toContain("Contact 7");
  expect(left).not.toContain("s3cret");
});

test("of a view only its records are copied, as it shows them at each sync", async () => {
  const engine = await engineWith(ofContacts({}));
  await synced(engine);
  const ids = async () => ((await engine.rows("contacts")) as { id: string }[]).map(({ id }) => id);
  const table = engine.source.tables[0]!;
  const shown = () => [...table.records.values()].filter(({ fields }) => fields.fld3).map(({ id }) => id);

  select(engine, ofContacts({ viewId: "viwOpen", fields: { fld2: "omitted" } }));
  await synced(engine);
  expect(shown()).toHaveLength(25);
  expect(await ids()).toEqual(shown());
  const catalog = await loadCatalog(engine.replica.replica);
  expect(catalog.get("tblC")).toMatchObject({
    spec: { partial: "records" },
    readAs: { [READ_VIEW]: ["viwOpen"] },
  });

  const [out, inside] = [table.records.get(idOf("C", 0))!, table.records.get(idOf("C", 1))!];
  table.records.set(out.id, { ...out, fields: { fld0: "left" } });
  table.records.set(inside.id, { ...inside, fields: { ...inside.fields, fld3: true } });
  await synced(engine);
  expect(await ids()).toEqual(shown());

  // No single answer tells an empty view from a spell of empty answers: it has to last.
  engine.source.views.set("viwOpen", () => false);
  await synced(engine);
  expect(await ids()).toEqual([]);

  select(engine, ofContacts({}));
  await synced(engine);
  expect(await ids()).toHaveLength(MANY);
  expect((await loadCatalog(engine.replica.replica)).get("tblC")!.readAs).not.toHaveProperty(READ_VIEW);
});

test("a table whose view is gone keeps its rows, the others are synced, and the error names the remedy", async () => {
  const engine = await engineWith({
    newTables: "copy",
    tables: { tblC: { copied: true, viewId: "viwOpen" } },
  });
  await synced(engine);
  const before = await engine.rows("contacts");
  const [contactsTable, salariesTable] = engine.source.tables;
  contactsTable!.table.views = [];
  salariesTable!.records.set("recS00001", sourceRecord("recS00001", { fldS: "new" }));
  const { failing } = await engine.sync();
  expect(failing).toMatchObject([{ code: "view_gone", message: expect.stringContaining("Copied data") }]);
  expect(await engine.rows("contacts")).toEqual(before);
  expect(await engine.rows("salaries")).toHaveLength(2);
});

test("new tables are copied, ignored, or asked about", async () => {
  const chosen = { tblC: { copied: true } };
  for (const newTables of ["copy", "ask", "ignore"] as const) {
    const engine = await engineWith({ newTables, tables: chosen });
    await synced(engine);
    const { schema } = engine.cache;
    expect(schema!.tables.map(({ id }) => id)).toEqual(newTables === "copy" ? ["tblC", "tblS"] : ["tblC"]);
    expect(schema!.unanswered).toEqual(newTables === "ask" ? [{ id: "tblS", name: "Salaries" }] : []);
  }
});
