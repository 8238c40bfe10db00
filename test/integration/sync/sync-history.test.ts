/** `_sync_history`: changes, recorded in the statements that make them. */
import fc from "fast-check";
import type postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  applyRowImages,
  applySettings,
  compileMapper,
  loadCatalog,
  mapRecords,
  type Replica,
  readChanges,
  takeReadVersion,
  trimHistory,
} from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { type Engine, testEngine } from "../../support/engine";
import type { FakeTable } from "../../support/fake-source";
import { readerOf, testReplica } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

const RUNS = Number(process.env.HISTORIES ?? 12);
const ON = { history: true, notify: false };

interface Change {
  table_name: string;
  record_id: string;
  operation: "insert" | "update" | "delete";
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
  by: "sync" | "proxy";
}

const changes = (sql: postgres.Sql) =>
  sql<
    Change[]
  >`select table_name, record_id, operation, old, new, by from public._sync_history order by id`.then(
    (rows) => [...rows],
  );

/** An engine with history, whose source has an empty table `people`. */
async function historian(): Promise<{ engine: Engine; people: FakeTable; sql: postgres.Sql }> {
  const engine = await testEngine();
  const people = engine.source.add(
    sourceTable("tblP", "People", { Name: "text", Age: "number", Friends: "links", Photo: "attachment" }),
    [],
  );
  await applySettings(engine.replica.replica, engine.input().epoch, ON);
  await engine.sync();
  return { engine, people, sql: engine.replica.replica.sql as unknown as postgres.Sql };
}

/** As the proxy shows a write: an image of no lease. Null: the record was deleted. */
async function writeThrough(replica: Replica, id: string, record: SourceRecord | null): Promise<void> {
  const table = (await loadCatalog(replica)).get("tblP")!;
  const records = record ? [record] : [];
  const rows = mapRecords(compileMapper(table.spec), records, []);
  const readVersion = await takeReadVersion(replica);
  await applyRowImages(replica, table, {
    epoch: null,
    readVersion,
    rows,
    gone: record ? [] : [id],
    issues: [],
    records,
  });
}

/** The table that results from all changes, starting empty; fails if a change does not fit the previous state. */
function replay(all: Change[]): Record<string, unknown>[] {
  const rows = new Map<string, Record<string, unknown>>();
  for (const change of all) {
    const row = rows.get(change.record_id);
    expect(row === undefined, JSON.stringify(change)).toBe(change.operation === "insert");
    for (const [column, value] of Object.entries(change.old ?? {}))
      expect(row?.[column] ?? null).toEqual(value);
    if (change.operation === "delete") rows.delete(change.record_id);
    else rows.set(change.record_id, { ...row, ...change.new });
  }
  return [...rows].map(([id, row]) => ({ id, ...withoutNulls(row) })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

const step = fc.record({
  kind: fc.constantFrom("create", "update", "update", "delete", "sync", "rebuild", "restart"),
  by: fc.constantFrom("people", "proxy"),
  pick: fc.nat(1000),
});

test("the changes, applied in order, give the table, whatever wrote them: edits at the source, writes through the proxy, rebuilds", {
  timeout: 60_000 + RUNS * 5000,
}, async () => {
  const isWhole = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
    const { engine, people, sql } = await historian();
    await using _gone = engine;
    const { replica } = engine.replica;
    let ids = 0;
    for (const { kind, by, pick } of steps) {
      const known = [...people.records.keys()];
      const id = kind === "create" ? `rec${String(++ids).padStart(5, "0")}` : known[pick % known.length];
      if (kind === "sync") await engine.sync();
      else if (kind === "rebuild") await engine.sync({ isForced: true });
      else if (kind === "restart") await engine.restart();
      else if (id) {
        const record = kind === "delete" ? null : sourceRecord(id, cellsOf(pick));
        if (record) people.records.set(id, record);
        else people.records.delete(id);
        if (by === "proxy") await writeThrough(replica, id, record);
      }
    }
    expect(await engine.sync()).toMatchObject({ completedAt: expect.any(Date) });
    const rows = (await engine.rows()) as Record<string, unknown>[];
    expect(replay(await changes(sql))).toEqual(rows.map(withoutNulls));
  });
  await fc.assert(isWhole, { numRuns: RUNS, endOnFailure: true });
});

/** Cells by a number: few enough values for two records to have the same, some of them none. */
function cellsOf(pick: number): Record<string, unknown> {
  return {
    ...(pick % 3 ? { fld0: `name ${pick % 7}` } : {}),
    ...(pick % 4 ? { fld1: (pick % 5) / 4 } : {}),
    ...(pick % 2 ? { fld2: [`rec${pick % 3}`, "recX"].slice(pick % 2) } : {}),
  };
}

test("a change names the changed columns, their values before and after, and its author", async () => {
  const { engine, people, sql } = await historian();
  const { replica } = engine.replica;
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann", fld1: 1 }));
  await engine.sync();
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann", fld1: 2, fld2: ["rec9"] }));
  await engine.sync();
  const written = sourceRecord("rec1", { fld0: "Bea", fld2: ["rec9"] });
  people.records.set("rec1", written);
  await writeThrough(replica, "rec1", written);
  people.records.clear();
  await writeThrough(replica, "rec1", null);
  await engine.sync();
  const created = { created_time: "2024-05-01T12:34:56" };
  const one = { table_name: "people", record_id: "rec1" };
  expect(await changes(sql)).toEqual([
    { ...one, operation: "insert", old: null, new: { ...created, name: "Ann", age: 1 }, by: "sync" },
    {
      ...one,
      operation: "update",
      old: { age: 1, friends: null },
      new: { age: 2, friends: ["rec9"] },
      by: "sync",
    },
    {
      ...one,
      operation: "update",
      old: { name: "Ann", age: 2 },
      new: { name: "Bea", age: null },
      by: "proxy",
    },
    {
      ...one,
      operation: "delete",
      old: { ...created, name: "Bea", friends: ["rec9"] },
      new: null,
      by: "proxy",
    },
  ]);
  const reader = readerOf(engine.replica.readerUrl);
  onTestFinished(() => reader[Symbol.asyncDispose]());
  expect(await changes(reader)).toHaveLength(4);
  await expect(reader`delete from public._sync_history`).rejects.toMatchObject({ code: expect.any(String) });
});

test("a rebuild records the changed records, and not the new columns", async () => {
  const { engine, people, sql } = await historian();
  const record = (id: string, name: string) => sourceRecord(id, { fld0: name, fld1: 1, fld7: "new" });
  for (let index = 0; index < 250; index++) people.records.set(`rec${index}`, record(`rec${index}`, "same"));
  await engine.sync();
  const before = (await changes(sql)).length;
  await engine.sync({ isForced: true });
  expect((await changes(sql)).length).toBe(before);
  // A field is added, one deleted, one retyped and one renamed.
  people.table.fields = sourceTable("tblP", "People", {
    "Full name": "text",
    Age: "text",
    Friends: "links",
  }).fields;
  people.table.fields.push({ id: "fld7", name: "Note", type: "text", sourceType: "text" });
  people.records.set("rec7", record("rec7", "other"));
  people.records.delete("rec9");
  people.records.set("recNew", record("recNew", "new"));
  await engine.sync();
  const noted = (await changes(sql)).slice(before);
  expect(noted.map(({ record_id, operation }) => `${operation} ${record_id}`).sort()).toEqual([
    "delete rec9",
    "insert recNew",
    "update rec7",
  ]);
  expect(noted.find(({ operation }) => operation === "update")).toMatchObject({
    old: { full_name: "same" },
    new: { full_name: "other" },
  });
});

test("a new URL of an attachment is no change; a new number of attachments is one", async () => {
  const { engine, people, sql } = await historian();
  const photos = (...urls: string[]) =>
    sourceRecord("rec1", { fld0: "Ann", fld3: urls.map((url, index) => ({ id: `att${index}`, url })) });
  const show = async (record: SourceRecord) => {
    people.records.set("rec1", record);
    await writeThrough(engine.replica.replica, "rec1", record);
  };
  await show(photos("https://files.example/1"));
  await show(photos("https://files.example/2"));
  await engine.sync({ isForced: true });
  people.records.set("rec1", photos("https://files.example/3"));
  await engine.sync({ isForced: true });
  expect(await engine.rows()).toMatchObject([{ photo: ["https://files.example/3"] }]);
  expect(await changes(sql)).toHaveLength(1);
  await show(photos("https://files.example/3", "https://files.example/4"));
  expect((await changes(sql)).at(-1)).toMatchObject({
    operation: "update",
    new: { photo: ["https://files.example/3", "https://files.example/4"] },
  });
});

test("history is kept for the set number of days, and its table is dropped when that is 0", async () => {
  const { engine, people, sql } = await historian();
  const { replica } = engine.replica;
  const { epoch } = engine.input();
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann" }));
  people.records.set("rec2", sourceRecord("rec2", { fld0: "Bea" }));
  await engine.sync();
  await sql`update public._sync_history set seen_at = now() - interval '8 days' where record_id = 'rec1'`;
  await trimHistory(replica, epoch, 9);
  expect(await changes(sql)).toHaveLength(2);
  await trimHistory(replica, epoch, 7);
  expect(await changes(sql)).toMatchObject([{ record_id: "rec2" }]);
  await applySettings(replica, epoch, { history: false, notify: false });
  people.records.set("rec3", sourceRecord("rec3", { fld0: "Cay" }));
  await engine.sync();
  await trimHistory(replica, epoch, 7);
  expect(await changes(sql)).toMatchObject([{ record_id: "rec2" }]);
  await sql`update public._sync_history set seen_at = now() - interval '8 days'`;
  await trimHistory(replica, epoch, 7);
  expect(await sql`select to_regclass('public._sync_history') as history`).toMatchObject([{ history: null }]);
});

test("nothing is recorded while history is disabled, and a customer's table of that name is left alone", async () => {
  await using test = await testReplica();
  const { replica, epoch, role } = test;
  const engineless = await replica.sql`select to_regclass('public._sync_history') as history`;
  expect(engineless).toMatchObject([{ history: null }]);
  await replica.sql.unsafe(
    `grant create on schema public to ${role}; alter role ${role} set default_transaction_read_only = off`,
  );
  await using customer = readerOf(test.readerUrl);
  await customer`create table public._sync_history (mine text)`;
  expect(await applySettings(replica, epoch, ON)).toBe(false);
  expect(await customer`select table_name from public._sync_issues`).toMatchObject([
    { table_name: "_sync_history" },
  ]);
  await trimHistory(replica, epoch, 1);
  await customer`drop table public._sync_history`;
  expect(await applySettings(replica, epoch, ON)).toBe(true);
  expect(await customer`select table_name from public._sync_issues`).toHaveLength(0);
});

test("agents are shown values from when a name means its field: from its first row on, and no plain text of a hash", async () => {
  const { engine, people } = await historian();
  const { ownerUrl: url, role } = engine.replica;
  const shown = async () => {
    const target = { url, admin: url, schema: "public", mayWrite: false };
    const { changes: all } = await readChanges(
      target,
      { timeoutMs: 20_000, bytes: 1_000_000 },
      {
        role,
        columns: [{ tableId: "tblP", fieldIds: ["fld0", "fld1"] }],
        isOldestFirst: true,
        limit: 100,
        mostBytes: 10_000,
        mostBytesEach: 1000,
      },
    );
    return all.map(({ operation, new: values }) => [operation, values]);
  };
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ann", fld1: 1 }));
  await engine.sync();
  await engine.sync({ isForced: true });
  const created = { created_time: "2024-05-01T12:34:56" };
  expect(await shown()).toEqual([["insert", { ...created, name: "Ann", age: 1 }]]);
  const [name, ...others] = people.table.fields;
  people.table.fields = [{ ...name!, type: "hashed" }, ...others];
  people.records.set("rec1", sourceRecord("rec1", { fld0: "a".repeat(64), fld1: 2 }));
  await engine.sync();
  expect(await shown()).toEqual([
    ["insert", { ...created, age: 1 }],
    ["update", { age: 2 }],
  ]);
});
