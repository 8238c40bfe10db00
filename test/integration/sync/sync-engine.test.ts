import { expect, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  takeReadVersion,
} from "../../../core/replica";
import type { SourceRecord } from "../../../core/source";
import { SchemaTracker, sweepTable } from "../../../core/sync/engine";
import { ReadVersionSource, tableCache } from "../../../core/sync/state";
import { testEngine } from "../../support/engine";
import { pageOf } from "../../support/fake-source";
import { sourceRecord, sourceTable } from "../../support/source-records";

const people = sourceTable("tblP", "People", { Name: "text", Age: "number" });
const person = (index: number, age: unknown = index): SourceRecord =>
  sourceRecord(`rec${String(index).padStart(5, "0")}`, { fld0: `Person ${index}`, fld1: age });
const persons = (count: number) => Array.from({ length: count }, (_, index) => person(index));

const engine = () => testEngine();

const expected = (records: Iterable<SourceRecord>) =>
  [...records].map(({ id, fields }) => ({
    id,
    created_time: "2024-05-01T12:34:56",
    name: fields.fld0 ?? null,
    age: fields.fld1 ?? null,
  }));

test("I3: a first sync, and each sweep after it, leaves the replica equal to the source", async () => {
  const { source, sync, rows, progress } = await engine();
  const { records } = source.add(people, persons(250));
  // The schema, three pages, and the schema again: it must not have changed meanwhile.
  expect(await sync()).toMatchObject({ kind: "first", seen: 250, inserted: 250, requests: 5 });
  expect(await rows()).toEqual(expected(records.values()));
  expect(progress.at(-1)).toMatchObject({ tables: [{ name: "people", records_done: 250, done: true }] });

  records.set("rec00007", person(7, 700));
  records.delete("rec00100");
  records.set("rec99999", person(99999));
  expect(await sync()).toMatchObject({ kind: "sweep", seen: 250, inserted: 1, updated: 1, deleted: 1 });
  expect(await rows()).toEqual(expected(records.values()));
  expect(await sync()).toMatchObject({ inserted: 0, updated: 0, deleted: 0 });
});

test("a worker without memory finds what changed before it started", async () => {
  const { source, sync, rows, restart } = await engine();
  const { records } = source.add(people, persons(150));
  await sync();
  records.set("rec00007", person(7, 700));
  records.delete("rec00100");
  await restart();
  expect(await sync()).toMatchObject({ kind: "sweep", inserted: 0, updated: 1, deleted: 1 });
  expect(await rows()).toEqual(expected(records.values()));
});

test("a build keeps a bounded number of issues, and the next sweep adds those of the other records", async () => {
  const { source, sync, replica } = await engine();
  const fields = Array.from({ length: 200 }, (_, index) => `Field ${index}`);
  const numbers = Object.fromEntries(fields.map((name) => [name, "number" as const]));
  const bad = Object.fromEntries(fields.map((_, index) => [`fld${index}`, "no number"]));
  source.add(
    sourceTable("tblN", "Numbers", numbers),
    Array.from({ length: 220 }, (_, index) => sourceRecord(`rec${String(index).padStart(5, "0")}`, bad)),
  );
  const count = async () => {
    const [row] = await replica.replica.sql<{ count: number }[]>`
      select count(*)::int as count from public._sync_issues`;
    return row!.count;
  };
  await sync();
  expect(await count()).toBe(100 * fields.length);
  expect(await sync()).toMatchObject({ kind: "sweep", inserted: 0, updated: 0, deleted: 0 });
  expect(await count()).toBe(220 * fields.length);
});

test("a change back to what the worker remembers is written over a proxied write", async () => {
  const { source, sync, rows, replica } = await engine();
  const { records } = source.add(people, persons(3));
  await sync();
  const table = (await loadCatalog(replica.replica)).get("tblP")!;
  const written = person(1, 1000);
  await applyRowImages(replica.replica, table, {
    epoch: null,
    readVersion: await takeReadVersion(replica.replica),
    rows: mapRecords(compileMapper(table.spec), [written, person(77)], []),
    gone: [],
    issues: [],
    records: [written, person(77)],
  });
  // The source has taken both back again before any sweep saw them.
  await sync();
  expect(await rows()).toEqual(expected(records.values()));
});

test("I2: a row that a sweep may not judge, as it was written after its first read version, is judged by the next", async () => {
  const { source, sync, rows, replica, input, cache } = await engine();
  const { records } = source.add(people, persons(3));
  await sync();
  const { reader, ...of } = input({ schemaPollMs: 60_000 });
  const sweep = async (readVersions: ReadVersionSource) => {
    const asking = { ...reader, readVersions, counts: { requests: 0, waitMs: 0 } };
    const schemaTracker = await SchemaTracker.open({ ...of, reader: asking });
    const { source: table, live } = schemaTracker.table("tblP");
    const sweeping = { ...of, reader: asking, schemaTracker, onProgress: () => {} };
    return sweepTable(sweeping, table!, tableCache(cache, live!));
  };
  const early = await takeReadVersion(replica.replica);
  const table = (await loadCatalog(replica.replica)).get("tblP")!;
  await applyRowImages(replica.replica, table, {
    epoch: null,
    readVersion: await takeReadVersion(replica.replica),
    rows: mapRecords(compileMapper(table.spec), [person(77)], []),
    gone: [],
    issues: [],
    records: [person(77)],
  });
  // The source has deleted it again by now.
  expect(await sweep(new ReadVersionSource(async () => early))).toMatchObject({ deleted: 0 });
  expect(await rows()).toHaveLength(4);
  expect(await sweep(new ReadVersionSource(() => takeReadVersion(replica.replica)))).toMatchObject({
    deleted: 1,
  });
  expect(await rows()).toEqual(expected(records.values()));
});

test("I1: a write that is applied while a rebuild reads its table is in the new table", async () => {
  const { source, sync, rows, replica } = await engine();
  const { records } = source.add(people, persons(250));
  await sync();
  source.tables[0]!.table = {
    ...people,
    fields: [...people.fields, { ...people.fields[0]!, id: "fld2", name: "New" }],
  };
  const table = (await loadCatalog(replica.replica)).get("tblP")!;
  source.before = async (call) => {
    if (call !== "list tblP 200") return;
    // Page 0 has been read: this one is older than the write, and the write's answer is on its way.
    const readVersion = await takeReadVersion(replica.replica);
    const written = person(5, 5000);
    records.set(written.id, written);
    records.delete("rec00006");
    await applyRowImages(replica.replica, table, {
      epoch: null,
      readVersion,
      rows: mapRecords(compileMapper(table.spec), [written], []),
      gone: ["rec00006"],
      issues: [],
      records: [written],
    });
  };
  expect(await sync()).toMatchObject({ kind: "first", inserted: 0 });
  expect(await rows()).toEqual(expected(records.values()).map((row) => ({ ...row, new: null })));
});

test("an iterator that the source loses starts the table again, and nothing is lost or doubled", async () => {
  const { source, sync, rows } = await engine();
  const { records } = source.add(people, persons(250));
  let failures = 2;
  source.before = (call) => {
    if (call === "list tblP 200" && failures-- > 0) throw new BasetideError("source_iterator_lost");
  };
  expect(await sync()).toMatchObject({ seen: 250 });
  expect(await rows()).toEqual(expected(records.values()));
});

test("a page that is given twice changes nothing", async () => {
  const { source, sync, rows } = await engine();
  const { records } = source.add(people, persons(150));
  source.onPage = (call, page) =>
    call === "list tblP 0" ? pageOf([...persons(100), person(3)], page.offset) : page;
  expect(await sync()).toMatchObject({ seen: 150 });
  expect(await rows()).toEqual(expected(records.values()));
});

test("a list without an end is an error, and the replica keeps what it has", async () => {
  const { source, sync, rows } = await engine();
  const { records } = source.add(people, persons(150));
  await sync();
  let next = 0;
  source.onPage = () => pageOf([person(1)], String(next++ % 100));
  expect(await sync()).toMatchObject({ completedAt: null, error: { code: "source_bad_answer" } });
  expect(await rows()).toEqual(expected(records.values()));
});

test("a table that cannot be read does not keep the others from being brought up to date", async () => {
  const { source, sync, rows } = await engine();
  source.add(people, persons(3));
  const other = source.add(sourceTable("tblO", "Other", { Name: "text" }), []);
  await sync();
  other.records.set("rec1", sourceRecord("rec1", { fld0: "new" }));
  source.before = (call) => {
    if (call.startsWith("list tblP")) throw new BasetideError("source_not_found");
  };
  expect(await sync()).toMatchObject({
    completedAt: expect.any(Date),
    failing: [{ table_id: "tblP", name: "People", code: "source_not_found" }],
  });
  expect(await rows("other")).toMatchObject([{ id: "rec1", name: "new" }]);
  expect(await rows()).toHaveLength(3);
});

test("a key that is refused for every table fails the sync with one request each, and the rows stay", async () => {
  const { source, sync, rows } = await engine();
  for (let index = 0; index < 20; index++)
    source.add(sourceTable(`tbl${index}`, `T ${index}`, { A: "text" }), []);
  source.add(people, persons(3));
  await sync();
  const calls = source.calls.length;
  source.before = (call) => {
    if (call !== "schema") throw new BasetideError("source_key_refused");
  };
  expect(await sync()).toMatchObject({ error: { code: "source_key_refused" } });
  expect(source.calls.length - calls).toBeLessThanOrEqual(24);
  expect(await rows()).toHaveLength(3);
});

test("while no sync runs _sync_meta says so, also when the last one failed", async () => {
  const { source, sync, replica } = await engine();
  source.add(people, persons(3));
  const meta = async () =>
    (
      await replica.replica.sql`
        select started_at <= completed_at as is_completed, started_at, completed_at from public._sync_meta`
    )[0]!;
  source.before = (call) => {
    if (call !== "schema") throw new BasetideError("source_not_found");
  };
  await sync();
  expect(await meta()).toMatchObject({ started_at: null, completed_at: null });
  source.before = () => {};
  await sync();
  const completed = await meta();
  source.before = () => {
    throw new BasetideError("source_not_found");
  };
  await sync();
  expect(await meta()).toMatchObject({ is_completed: true, completed_at: completed.completed_at });
});

test("a 429 blocks the base for 30 s for everyone, and is no failure", async () => {
  const { source, sync, blocks } = await engine();
  source.add(people, persons(3));
  let refusals = 1;
  source.before = () => {
    if (refusals-- > 0) throw new BasetideError("source_rate_limited");
  };
  expect(await sync()).toMatchObject({ seen: 3, requests: 3 });
  expect(blocks).toEqual([30_000]);
});

test("new, dropped and retyped fields rebuild their table; renamed ones are renamed in place", async () => {
  const { source, sync, rows } = await engine();
  const things = sourceTable("tblT", "Things", { Count: "number", Label: "text" });
  source.add(things, [sourceRecord("rec1", { fld0: 5, fld1: "five" })]);
  await sync();
  things.fields[1]!.name = "Title";
  expect(await sync()).toMatchObject({ kind: "sweep" });
  expect(await rows("things")).toMatchObject([{ count: 5, title: "five" }]);
  things.fields[0]!.type = "text";
  source.tables[0]!.records.set("rec1", sourceRecord("rec1", { fld0: "5 or so", fld1: "five", fld2: true }));
  things.fields.push({ id: "fld2", name: "Done", type: "checkbox", sourceType: "checkbox" });
  await sync();
  expect(await rows("things")).toMatchObject([{ count: "5 or so", title: "five", done: true }]);
  things.fields.splice(1, 1);
  await sync();
  expect(Object.keys((await rows("things"))[0] as object)).toEqual(["id", "created_time", "count", "done"]);
});

test("a table that vanishes from the schema for one look is not dropped", async () => {
  const { source, sync, rows } = await engine();
  source.add(people, persons(3));
  source.add(sourceTable("tblO", "Other", { Name: "text" }), []);
  await sync();
  const [vanished] = source.tables.splice(0, 1);
  source.before = (call) => {
    if (call === "list tblP 0")
      source.tables.unshift(...(source.tables.includes(vanished!) ? [] : [vanished!]));
  };
  vanished!.records.set("rec9", person(9));
  await sync();
  expect(await rows()).toHaveLength(4);
  source.before = () => {};
  source.tables.splice(0, 1);
  await sync();
  await expect(rows()).rejects.toMatchObject({ code: "42P01" });
});

test("settings that change column types rebuild just the tables they concern", async () => {
  const { source, sync, rows, replica } = await engine();
  source.add(people, persons(2));
  source.add(sourceTable("tblL", "Linked", { Links: "links" }), [
    sourceRecord("rec1", { fld0: ["recA", "recB"] }),
  ]);
  await sync();
  const files = () =>
    replica.replica.sql`select relname, relfilenode from pg_class where relname = 'people'`.then((found) => [
      ...found,
    ]);
  const before = await files();
  await sync({ settings: { linkedRecordsAsText: true } });
  expect(await rows("linked")).toMatchObject([{ links: "recA" }]);
  expect(await files()).toEqual(before);
});

test("a forced sync compares every row, and reports those that were written", async () => {
  const { source, sync, rows, replica } = await engine();
  const { records } = source.add(people, persons(120));
  await sync();
  await replica.replica.sql`update public.people set age = -1`;
  expect(await sync({ isForced: true })).toMatchObject({ inserted: 0, updated: 120, deleted: 0 });
  expect(await rows()).toEqual(expected(records.values()));
});

test("a base without tables, and tables without records or with computed fields only, sync", async () => {
  const { source, sync, rows } = await engine();
  expect(await sync()).toMatchObject({ seen: 0, tables: [] });
  source.add(sourceTable("tblE", "Empty", { Name: "text" }), []);
  source.add(sourceTable("tblC", "Computed", { F: "formula", N: "autonumber" }), [
    sourceRecord("rec1", { fld0: "x", fld1: 1 }),
  ]);
  expect(await sync()).toMatchObject({ seen: 1 });
  expect(await rows("empty")).toEqual([]);
  expect(await rows("computed")).toMatchObject([{ f: "x", n: 1 }]);
});

test("cells that do not fit are NULL and told of, and stop nothing", async () => {
  const { source, sync, rows, replica } = await engine();
  source.add(people, [person(1, "many"), person(2, { specialValue: "NaN" }), person(3, 1e308)]);
  expect(await sync()).toMatchObject({ issueCount: 2, completedAt: expect.any(Date) });
  expect(await rows()).toMatchObject([{ age: null }, { age: null }, {}]);
  source.tables[0]!.records.set(person(1).id, person(1, 5));
  expect(await sync()).toMatchObject({ issueCount: 1, issues: [{ table: "people", column: "age" }] });
  expect(await replica.replica.sql`select * from public._sync_issues`).toHaveLength(1);
});
