/** A field that gets another type: its column is exchanged in place, and readers, writers and objects stay whole. */
import { expect, test, vi } from "vitest";
import {
  applyRowImages,
  type CatalogTable,
  columnSlots,
  compareBuild,
  dropUnfinished,
  fillColumns,
  loadCatalog,
  mergeBuild,
  planSchema,
  replaceTable,
  startBuild,
  takeReadVersion,
} from "../../../core/replica";
import type { MergeOptions } from "../../../core/replica/merge";
import type { FieldType } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { readerOf, type TestReplica, testReplica } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 90_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const AT = "2024-05-01T12:34:56";
const ROWS = 5000;
const ids = Array.from({ length: ROWS }, (_, nth) => `rec${String(nth).padStart(5, "0")}`);
const OPTIONS: MergeOptions = { seen: Number.MAX_SAFE_INTEGER, issues: [], most: 100, compared: null };

/** A complete build of `orders` with this type of its field Price, whose n-th value is n. */
async function built({ replica, epoch }: TestReplica, type: FieldType) {
  const catalog = await loadCatalog(replica);
  const tables = [sourceTable("tblO", "Orders", { Price: type, Note: "text" })];
  const build = await startBuild(replica, epoch, planSchema(catalog, { tables }, SETTINGS).rebuild[0]!);
  const price = (nth: number) => (type === "text" ? `t${nth}` : nth);
  for (let from = 0; from < ROWS; from += 1000)
    await build.append(
      ids
        .slice(from, from + 1000)
        .map((id, nth) => ({ id, created_time: AT, price: price(from + nth), note: "n" })),
    );
  return { build, live: catalog.get("tblO") as CatalogTable };
}

async function orders(made: TestReplica) {
  const { build } = await built(made, "text");
  await putBuild(made, build, undefined);
  await made.replica.sql.unsafe(`create index by_price on public.orders (price) include (note);
    create index by_length on public.orders (length(price)); create index by_both on public.orders (note, price) where price is not null`);
}

/** What hangs on the table, and its columns. */
const stateOf = ({ replica: { sql } }: TestReplica) =>
  sql`select 'public.orders'::regclass::oid::int as oid,
    (select array_agg(attname::text order by attname) from pg_attribute where attrelid = 'public.orders'::regclass and attnum > 0 and not attisdropped) as columns,
    (select array_agg(indexdef order by indexname) from pg_indexes where tablename = 'orders' and schemaname = 'public' and indexname !~ '_pkey') as indexes,
    (select array_agg(field || ': ' || reason) from public._sync_issues) as issues`.then(([row]) => row!);

test("I6: every reader sees the old column or the new one, and indexes wait for no reader", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  await orders(made);
  const before = await stateOf(made);
  const { build, live } = await built(made, "number");
  await using reader = readerOf(made.readerUrl);
  let isOver = false;
  const seen = new Set<string>();
  const watching = (async () => {
    while (!isOver) {
      const rows =
        await reader`select to_jsonb(o) -> 'price' as price, id from orders as o where id in ${reader([ids[0]!, ids[2500]!, ids.at(-1)!])}`;
      const kinds = rows.map(({ price, id }) =>
        price === `t${Number(id.slice(3))}`
          ? "old"
          : price === Number(id.slice(3))
            ? "new"
            : `${id} ${price}`,
      );
      for (const kind of kinds) seen.add(kind);
      if (new Set(kinds).size > 1) seen.add("mixed");
    }
  })();
  expect((await mergeBuild(replica, epoch, build, live, OPTIONS)).merging).toBe("large");
  await fillColumns(replica, epoch, build, live);
  const { merging } = await mergeBuild(replica, epoch, build, live, OPTIONS);
  expect(merging).toBe("merged");
  await until(async () => seen.has("new"), { what: "the new column is seen", timeoutMs: 30_000 });
  isOver = true;
  await watching;
  expect([...seen].toSorted()).toEqual(["new", "old"]);
  const after = await stateOf(made);
  expect(after).toEqual({
    ...before,
    indexes: before.indexes.filter((text: string) => !text.includes("by_length")),
    issues: [
      expect.stringMatching(
        /^index by_length: no longer on the table since its last change: function .*length/,
      ),
    ],
  });
  expect(
    await made.replica.sql`select count(*)::int as n from public.orders where price = substr(id, 4)::numeric`,
  ).toEqual([{ n: ROWS }]);
  const [stats] = await made.replica
    .sql`select n_distinct from pg_stats where tablename = 'orders' and attname = 'price'`;
  expect(stats).toEqual({ n_distinct: -1 });
});

test("a lease that ends while it fills leaves the old column, and the next one drops the new one", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  await orders(made);
  const before = await stateOf(made);
  const { build, live } = await built(made, "number");
  const stopped = new Error("stopped");
  let batches = 0;
  const stop = () => {
    if (++batches === 2) throw stopped;
  };
  await expect(fillColumns(replica, epoch, build, live, stop)).rejects.toBe(stopped);
  expect((await stateOf(made)).columns).toHaveLength(5);
  await dropUnfinished(replica, epoch);
  expect(await stateOf(made)).toEqual(before);
  // As if it had ended after the indexes.
  const second = await built(made, "number");
  await fillColumns(replica, epoch, second.build, second.live);
  expect((await stateOf(made)).indexes).toHaveLength(before.indexes.length + 2);
  await dropUnfinished(replica, epoch);
  expect(await stateOf(made)).toEqual(before);
});

test("a write that arrives while the column is filled is not lost", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  await orders(made);
  const { build, live } = await built(made, "number");
  const seen = await takeReadVersion(replica);
  const compared = await compareBuild(replica, epoch, build, live, seen);
  await fillColumns(replica, epoch, build, live);
  const { price: _price, ...rest } = { id: ids[7]!, created_time: AT, price: "t7", note: "later" };
  const written = await applyRowImages(replica, live, {
    epoch: null,
    readVersion: await takeReadVersion(replica),
    rows: [{ ...rest, price: "old type" }],
    gone: [ids[8]!],
    issues: [],
    records: [sourceRecord(ids[7]!, { fld0: 77, fld1: "later" })],
  });
  expect(written.lost).toEqual([]);
  const options = { ...OPTIONS, compared };
  expect((await mergeBuild(replica, epoch, build, live, { ...options, seen })).merging).toBe("behind");
  // As the engine replays the log.
  await build.append([{ id: ids[7]!, created_time: AT, price: 77, note: "later" }]);
  const noteOf6 = () => replica.sql`select note from public.orders where id = ${ids[6]!}`;
  const note = await noteOf6();
  await build.remove([ids[6]!, ids[8]!]);
  await build.keep(live, [ids[6]!]);
  expect((await mergeBuild(replica, epoch, build, live, options)).merging).toBe("merged");
  expect([note.length, await noteOf6()]).toEqual([1, note]);
  expect(
    await replica.sql`select id, price::int, note from public.orders where id in ${replica.sql([ids[7]!, ids[8]!])}`,
  ).toEqual([{ id: ids[7]!, price: 77, note: "later" }]);
});

test("through a sync: a retype, a setting and a Resync keep the table, its views and its grants", async () => {
  const engine = await testEngine();
  const { source, replica } = engine;
  const { sql } = replica.replica;
  const people = source.add(sourceTable("tblP", "People", { Name: "text", Age: "text", Tags: "links" }), [
    sourceRecord("rec1", { fld0: "Ada", fld1: "36", fld2: ["recX"] }),
  ]);
  await engine.sync();
  const oid = async () => (await sql`select 'public.people'::regclass::oid::int as oid`)[0]!.oid;
  const before = await oid();
  await sql.unsafe("create view public.ages as select name, age from public.people");
  await using reader = readerOf(replica.readerUrl);
  people.table.fields[1]!.type = "number";
  people.records.set("rec1", sourceRecord("rec1", { fld0: "Ada", fld1: 36, fld2: ["recX"] }));
  expect((await engine.sync()).error).toBe(undefined);
  expect(await reader`select name, age::int from ages`).toEqual([{ name: "Ada", age: 36 }]);
  expect((await engine.sync({ settings: { linkedRecordsAsText: true } })).error).toBe(undefined);
  expect(await reader`select tags from people`).toEqual([{ tags: "recX" }]);
  expect((await engine.sync({ isForced: true, settings: { linkedRecordsAsText: true } })).error).toBe(
    undefined,
  );
  people.table.fields.splice(1, 1);
  await engine.sync({ settings: { linkedRecordsAsText: true } });
  await engine.sync({ settings: { linkedRecordsAsText: true } });
  expect(Object.keys((await engine.rows())[0] as object)).toEqual(["id", "created_time", "name", "tags"]);
  expect(await oid()).toBe(before);
});

test("a table is replaced on an operator's request: with its views, and only if others lose nothing unasked", async () => {
  const engine = await testEngine();
  const { source, replica } = engine;
  const { sql } = replica.replica;
  source.add(sourceTable("tblP", "People", { Name: "text" }), [sourceRecord("rec1", { fld0: "Ada" })]);
  await engine.sync();
  const oid = async () => (await sql`select 'public.people'::regclass::oid::int as oid`)[0]!.oid;
  const before = await oid();
  await sql.unsafe(`create view public.names as select name from public.people; create index by_name on public.people (name);
    alter table public.people add column mine int; alter table public.people drop column mine`);
  expect(await columnSlots(replica.replica)).toEqual([{ name: "people", used: 4, dropped: 1 }]);
  expect(await replaceTable(replica.replica, "people", false)).toEqual(["index public.by_name"]);
  await engine.sync();
  expect(await oid()).toBe(before);
  await sql.unsafe("create table public.needs (id text references public.people (id))");
  await expect(replaceTable(replica.replica, "people", true)).rejects.toMatchObject({
    code: "destination_invalid",
    message: expect.stringContaining("needs_id_fkey"),
  });
  await sql`drop table public.needs`;
  await replaceTable(replica.replica, "people", true);
  await engine.restart();
  expect((await engine.sync()).error).toBe(undefined);
  expect(await oid()).not.toBe(before);
  expect(await sql`select name from public.names`).toEqual([{ name: "Ada" }]);
  expect(await columnSlots(replica.replica)).toEqual([{ name: "people", used: 3, dropped: 0 }]);
  const replaced = await oid();
  expect((await engine.sync({ isForced: true })).error).toBe(undefined);
  expect(await oid()).toBe(replaced);
});
