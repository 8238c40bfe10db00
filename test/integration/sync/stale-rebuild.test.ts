/** A rebuild whose table waits for queries to go live: a change of its shape ends it, and no write is lost. */
import { expect, test } from "vitest";
import { pollForChanges, SchemaTracker } from "../../../core/sync/engine";
import { tableCache } from "../../../core/sync/state";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { readerOf } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

test("a rebuild that waits for its swap is abandoned if its table has got other columns, and another table its name", async () => {
  const engine = await testEngine();
  const table = sourceTable("tblT", "Things", { Name: "text", Count: "number" });
  const records = Array.from({ length: 2 * engine.source.pageSize }, (_, index) =>
    sourceRecord(`rec${String(index).padStart(5, "0")}`, { fld0: `Thing ${index}`, fld1: index }),
  );
  const { records: live } = engine.source.add(table, records);
  const other = sourceTable("tblO", "Other", { Name: "text" });
  engine.source.add(other, [sourceRecord("rec1", { fld0: "x" })]);
  await engine.sync();
  const addField = (id: string, name: string) => {
    table.fields.push({ id, name, type: "text", sourceType: "text" });
    for (const record of live.values()) record.fields[id] = name;
  };
  addField("fld2", "New");
  await using reader = readerOf(engine.replica.readerUrl);
  const looks = () => engine.source.calls.filter((call) => call === "schema").length;
  const before = looks();
  const synced = await reader.begin(async (query) => {
    await query`select count(*) from things`;
    const sync = engine.sync();
    // The second schema check confirms what was read; from then on only the query delays the swap.
    await until(() => looks() === before + 2, { what: "the table has been read" });
    table.name = "Items";
    other.name = "Things";
    addField("fld3", "Newer");
    engine.cache.schemaCheckRequestedAt = new Date(1234);
    await until(() => engine.looks.length > 0, { what: "the schema is checked" });
    return { sync };
  });
  expect(await synced.sync).toMatchObject({ completedAt: expect.any(Date) });
  expect((await engine.rows("items"))[7]).toMatchObject({ count: 7, new: "New", newer: "Newer" });
  expect(await engine.rows("things")).toMatchObject([{ name: "x" }]);
});

test("I1: what a catch-up writes while the table is rebuilt stays, although it knows of no rebuild", async () => {
  const engine = await testEngine();
  const table = sourceTable("tblT", "Things", { Name: "text", Kind: "text" });
  const { records: live, modifiedMs } = engine.source.add(table, [sourceRecord("rec1", { fld0: "first" })]);
  await engine.sync();
  const input = engine.input({ schemaPollMs: Number.POSITIVE_INFINITY });
  const reading = { ...input.reader, counts: { requests: 0, waitMs: 0 } };
  const schemaTracker = await SchemaTracker.open({ ...input, reader: reading });
  Object.assign(table.fields[1]!, { type: "number", sourceType: "number" });
  await using reader = readerOf(engine.replica.readerUrl);
  const read = Promise.withResolvers<void>();
  engine.source.onPage = (call, page) => {
    if (call.startsWith("list")) read.resolve();
    return page;
  };
  const { sync } = await reader.begin(async (query) => {
    await query`select count(*) from things`;
    const sync = engine.sync();
    // The page that the rebuild gets was made before.
    await read.promise;
    live.get("rec1")!.fields.fld0 = "second";
    live.set("rec2", sourceRecord("rec2", { fld0: "created" }));
    for (const id of live.keys()) modifiedMs.set(id, 1);
    const poll = { ...input, reader: reading, schemaTracker, modifiedSince: String, sinceMs: 0 };
    const { source, live: known } = schemaTracker.table("tblT");
    await pollForChanges(poll, source!, tableCache(engine.cache, known!));
    expect(await query`select name from things order by id`).toMatchObject([
      { name: "second" },
      { name: "created" },
    ]);
    return { sync };
  });
  await sync;
  expect(await engine.rows("things")).toMatchObject([
    { name: "second", kind: null },
    { name: "created", kind: null },
  ]);
});
