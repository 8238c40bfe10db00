/** I2: rows are deleted on evidence only: the source was asked for them by id, and its answer can be trusted. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { BasetideError } from "../../../core/errors";
import {
  applyRowImages,
  compileMapper,
  loadCatalog,
  mapRecords,
  recordDamage,
  takeReadVersion,
} from "../../../core/replica";
import type { RecordPage, SourceRecord } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { pageOf } from "../../support/fake-source";
import { sourceRecord, sourceTable } from "../../support/source-records";

const people = sourceTable("tblP", "People", { Name: "text" });
const idOf = (index: number) => `rec${String(index).padStart(5, "0")}`;
const person = (index: number, name = `Person ${index}`): SourceRecord =>
  sourceRecord(idOf(index), { fld0: name });
const persons = (count: number) => Array.from({ length: count }, (_, index) => person(index));

/** A synced replica of this many people. */
async function synced(count: number, emptySpellMs = 60_000) {
  const engine = await testEngine({ emptySpellMs });
  const { records, table } = engine.source.add(structuredClone(people), persons(count));
  await engine.sync();
  engine.source.calls.length = 0;
  const made = {
    ...engine,
    records,
    table,
    /** The number of calls of a kind. */
    calls: (kind: string) => engine.source.calls.filter((call) => call.startsWith(`${kind} `)).length,
    expected: () =>
      [...records.values()]
        .map(({ id, fields }) => ({ id, created_time: "2024-05-01T12:34:56", name: fields.fld0 ?? null }))
        .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  };
  return made;
}

/** The page without the records that `isLeftOut`. */
function without(page: RecordPage, isLeftOut: (id: string) => boolean): RecordPage {
  const all = Array.from({ length: page.size }, (_, index) => page.record(index));
  return pageOf(
    all.filter(({ id }) => !isLeftOut(id)),
    page.offset,
  );
}

test("a table of 40 records that is emptied at the source is empty after one sync, with a few requests", async () => {
  const { sync, rows, records, calls } = await synced(40);
  records.clear();
  expect(await sync()).toMatchObject({ completedAt: expect.any(Date), seen: 0, deleted: 40 });
  expect(await rows()).toEqual([]);
  expect([calls("list"), calls("ids"), calls("get")]).toEqual([1, 1, 10]);
});

test("a deleted part of a table costs one request per 99 rows, and the table is read once", async () => {
  const { sync, rows, records, calls, expected } = await synced(450);
  for (let index = 0; index < 250; index++) records.delete(idOf(index));
  const report = await sync();
  expect(report).toMatchObject({ seen: 200, deleted: 250 });
  expect([calls("list"), calls("ids"), calls("get")]).toEqual([2, 3, 0]);
  // They are requests of the sync like any other: the quota and the budget count them.
  expect(report.requests).toBe(calls("list") + calls("ids") + 1);
  expect(await rows()).toEqual(expected());
});

test("records that a list left out are written as they are now, and count as read", async () => {
  const { source, sync, rows, records, expected } = await synced(250);
  records.set(idOf(120), person(120, "Renamed"));
  records.delete(idOf(130));
  source.onPage = (call, page) => (call === "list tblP 100" ? pageOf([], page.offset) : page);
  expect(await sync()).toMatchObject({ seen: 249, updated: 1, deleted: 1, inserted: 0 });
  expect(await rows()).toEqual(expected());
});

test("rows do not disappear while a table answers empty, and the sync continues when that ends", async () => {
  const { source, sync, rows, records, expected } = await synced(250, 600);
  records.delete(idOf(7));
  let answers = 0;
  source.onPage = (_, page) => (++answers > 8 ? page : pageOf([]));
  expect(await sync()).toMatchObject({ completedAt: expect.any(Date), seen: 249, deleted: 1 });
  expect(await rows()).toEqual(expected());
});

test("a source that keeps answering empty fails the sync, and the rows stay", async () => {
  const { source, sync, rows, expected } = await synced(250, 150);
  source.onPage = () => pageOf([]);
  expect(await sync()).toMatchObject({ completedAt: null, error: { code: "source_bad_answer" } });
  expect(await rows()).toEqual(expected());
});

test("a record that the key may not read, in a table that it may read, is deleted", async () => {
  const { source, sync, rows, records } = await synced(30);
  records.clear();
  source.before = (call) => {
    if (call.startsWith("get ")) throw new BasetideError("source_forbidden");
  };
  expect(await sync()).toMatchObject({ deleted: 30 });
  expect(await rows()).toEqual([]);
});

test("a row whose id is not one of the source's is deleted without a request", async () => {
  const { sync, rows, expected, replica, restart, calls } = await synced(3);
  for (const id of ["o'ghost", ""]) {
    await replica.replica.sql`insert into public.people (id, created_time) values (${id}, now())`;
  }
  await restart();
  expect(await sync()).toMatchObject({ deleted: 2 });
  expect(calls("ids")).toBe(0);
  expect(await rows()).toEqual(expected());
});

test("a row that a client writes after it was requested is kept", async () => {
  const { source, sync, rows, records, replica, expected } = await synced(3);
  const restored = person(1, "Restored");
  records.delete(restored.id);
  source.before = async (call) => {
    if (call !== "ids tblP") return;
    const table = (await loadCatalog(replica.replica)).get("tblP")!;
    await applyRowImages(replica.replica, table, {
      epoch: null,
      readVersion: await takeReadVersion(replica.replica),
      rows: mapRecords(compileMapper(table.spec), [restored], []),
      gone: [],
      issues: [],
      records: [restored],
    });
  };
  expect(await sync()).toMatchObject({ deleted: 0 });
  records.set(restored.id, restored);
  expect(await rows()).toEqual(expected());
  // It is judged by the next.
  source.before = () => {};
  records.delete(restored.id);
  expect(await sync()).toMatchObject({ deleted: 1 });
});

test("a rebuild, too, requests the records that its list left out", async () => {
  const { source, sync, rows, records, table, expected, calls } = await synced(250);
  table.fields.push({ ...table.fields[0]!, id: "fld1", name: "New" });
  records.delete(idOf(3));
  source.onPage = (call, page) => (call === "list tblP 100" ? without(page, (id) => id > idOf(150)) : page);
  expect(await sync()).toMatchObject({ kind: "first", inserted: 0, deleted: 1 });
  expect(calls("ids")).toBe(1);
  expect(await rows()).toEqual(expected().map((row) => ({ ...row, new: null })));
});

test("so does the rebuild of a table that somebody has damaged", async () => {
  const { source, sync, rows, records, expected, calls, replica, input } = await synced(250);
  await replica.replica.sql`alter table public.people drop column name`;
  await recordDamage(replica.replica, input().epoch);
  records.delete(idOf(3));
  source.onPage = (call, page) => (call === "list tblP 100" ? without(page, (id) => id > idOf(150)) : page);
  expect(await sync()).toMatchObject({ kind: "first", inserted: 0, deleted: 1 });
  expect(calls("ids")).toBe(1);
  expect(await rows()).toEqual(expected());
});

test("a rebuild requests a deleted record together with one that exists, so one answer is enough", async () => {
  const { sync, rows, records, table, expected, calls } = await synced(150);
  table.fields.push({ ...table.fields[0]!, id: "fld1", name: "New" });
  records.delete(idOf(3));
  expect(await sync()).toMatchObject({ kind: "first", deleted: 1 });
  expect([calls("ids"), calls("get")]).toEqual([1, 0]);
  expect(await rows()).toEqual(expected().map((row) => ({ ...row, new: null })));
});

test("whatever a list leaves out, repeats or returns for another page, no sync deletes an existing record", async () => {
  const { source, sync, rows, records, expected, restart } = await synced(120);
  source.pageSize = 10;
  const anomaly = fc.oneof(
    fc.record({ kind: fc.constant("loses" as const), page: fc.nat(11) }),
    fc.record({
      kind: fc.constant("leaves out" as const),
      page: fc.nat(11),
      every: fc.integer({ min: 2, max: 5 }),
    }),
    fc.record({ kind: fc.constant("ends" as const), page: fc.nat(11) }),
    fc.record({ kind: fc.constant("repeats" as const), page: fc.integer({ min: 1, max: 11 }) }),
  );
  const round = fc.record({
    anomalies: fc.array(anomaly, { maxLength: 3 }),
    gone: fc.uniqueArray(fc.nat(119), { maxLength: 60 }),
    isForgetful: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 3 }), async (rounds) => {
      for (const { anomalies, gone, isForgetful } of rounds) {
        for (const one of persons(120)) records.set(one.id, one);
        source.onPage = (_, page) => page;
        await sync();
        for (const index of gone) records.delete(idOf(index));
        if (isForgetful) await restart();
        let last: RecordPage | undefined;
        const played = new Set<unknown>();
        source.onPage = (call, page) => {
          const before = last;
          last = page;
          if (!call.startsWith("list ")) return page;
          const at = Number(call.split(" ")[2]) / 10;
          const one = anomalies.find((each) => each.page === at && !played.has(each));
          if (!one) return page;
          played.add(one);
          if (one.kind === "loses") return pageOf([], page.offset);
          if (one.kind === "ends") return without({ ...page, offset: undefined }, () => false);
          if (one.kind === "repeats")
            return before ? without({ ...before, offset: page.offset }, () => false) : page;
          return without(page, (id) => Number(id.slice(3)) % one.every === 0);
        };
        expect(await sync()).toMatchObject({
          completedAt: expect.any(Date),
          inserted: 0,
          deleted: gone.length,
        });
        expect(await rows()).toEqual(expected());
      }
    }),
    { numRuns: 25 },
  );
});
