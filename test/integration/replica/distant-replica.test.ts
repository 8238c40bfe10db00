/** A replica behind TLS and round trips of 100 ms: its structure changes, it is damaged, and dependent objects stay. */
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { createAuthority } from "../../../core/http";
import { applyIndexes, recordDamage } from "../../../core/replica";
import { forgetRows } from "../../../core/sync/state";
import { type Engine, testEngine } from "../../support/engine";
import { faultProxy } from "../../support/fault-proxy";
import { readerOf } from "../../support/replica";
import { tlsRelay } from "../../support/servers/tls-relay";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 300_000 });

/** In each direction. */
const DELAY_MS = 50;
/** More than one merge writes while readers wait. */
const RECORDS = 5200;
const people = (nth: number, cells: Record<string, unknown> = {}) =>
  sourceRecord(`rec${nth}`, { fld0: `n${nth}`, fld1: [`t${nth}`], ...cells });
const FIELDS = { Name: "text", Tags: "links" } as const;

async function distant(): Promise<Engine> {
  const { hostname, port } = new URL(inject("clusterUrl"));
  const certificate = createAuthority("A test's").issue(["localhost", "127.0.0.1"]);
  const relay = await tlsRelay({ host: hostname, port: Number(port) }, { certificate });
  const line = await faultProxy({ host: "127.0.0.1", port: relay.port }, { isPostgres: false });
  line.delayMs = DELAY_MS;
  const engine = await testEngine({ over: (url) => line.over(relay.over(url)) });
  onTestFinished(async () => {
    await engine[Symbol.asyncDispose]();
    await line[Symbol.asyncDispose]();
    expect(relay.encrypted).toBeGreaterThan(0);
    expect(relay.plain).toBe(0);
    await relay[Symbol.asyncDispose]();
  });
  return engine;
}

test("fields, tables, settings and indexes change on a distant replica, and dependent objects stay", async () => {
  const engine = await distant();
  const { source, replica } = engine;
  const table = source.add(
    sourceTable("tblP", "People", FIELDS),
    Array.from({ length: RECORDS }, (_, nth) => people(nth)),
  );
  source.pageSize = 1000;
  const tasks = source.add(sourceTable("tblT", "Tasks", { Name: "text" }), [
    sourceRecord("recT", { fld0: "t" }),
  ]);
  await using near = readerOf(replica.ownerUrl);
  const sync = async (options?: Parameters<Engine["sync"]>[0]) => {
    const report = await engine.sync(options);
    expect(report.error).toBeUndefined();
    return report;
  };
  await sync();
  await near.unsafe(
    "create index by_name on people (lower(name)); create index by_task on tasks (lower(name))",
  );
  const kept = async () => [
    ...(await near`select indexname as name from pg_indexes where indexname ~ '^by_' order by 1`),
  ];
  const oid = async () => (await near`select 'public.people'::regclass::oid::int as oid`)[0]!.oid as number;
  const before = await oid();

  // A field with a value in every row, filled in advance.
  table.table = sourceTable("tblP", "People", { ...FIELDS, More: "text" });
  for (const [id, record] of table.records) {
    table.records.set(id, { ...record, fields: { ...record.fields, fld2: `more ${id}` } });
  }
  expect(await sync()).toMatchObject({ inserted: 0, updated: RECORDS, deleted: 0 });
  expect([...(await near`select count(*)::int as n from people where more = 'more ' || id`)]).toEqual([
    { n: RECORDS },
  ]);
  expect(await oid()).toBe(before);
  expect([
    ...(await near`select attname from pg_attribute where attname ~ '^_filling' and not attisdropped`),
  ]).toEqual([]);

  // A table that is deleted and restored at the source.
  source.tables.splice(source.tables.indexOf(tasks), 1);
  await sync();
  expect((await near`select to_regclass('public.tasks') as name`)[0]!.name).toBeNull();
  source.tables.push(tasks);
  await sync();
  expect(await kept()).toEqual([{ name: "by_name" }, { name: "by_task" }]);

  // One that is dropped in SQL.
  await near`drop table people`;
  forgetRows(engine.cache, await recordDamage(replica.replica, engine.input().epoch));
  await sync();
  expect([...(await near`select count(*)::int as n from people`)]).toEqual([{ n: RECORDS }]);
  await near.unsafe("create index if not exists by_name on people (lower(name))");

  // A setting that changes a column's type, there and back.
  await sync({ settings: { linkedRecordsAsText: true } });
  expect([...(await near`select tags from people where id = 'rec1'`)]).toEqual([{ tags: "t1" }]);
  await sync();
  expect([...(await near`select tags from people where id = 'rec1'`)]).toEqual([{ tags: ["t1"] }]);
  expect(await kept()).toEqual([{ name: "by_name" }, { name: "by_task" }]);

  // Indexes by the setting.
  const { epoch } = engine.input();
  const wanted = ["fld0", "fld1"].map((fieldId) => ({
    tableId: "tblP",
    fieldId,
    kind: "default" as const,
  }));
  expect(await applyIndexes(replica.replica, epoch, wanted)).toBe(true);
  expect(await applyIndexes(replica.replica, epoch, wanted.slice(1))).toBe(true);
  expect([
    ...(await near`select indexdef from pg_indexes where tablename = 'people' and indexname ~ '_fld.*_idx$'`),
  ]).toEqual([{ indexdef: expect.stringContaining("gin (tags)") }]);
  expect(await sync()).toMatchObject({ kind: "sweep", seen: RECORDS + 1, inserted: 0, updated: 0 });
});
