/** Views over arrays of links and over attachments: one row per link or file, whatever happens to the tables under them. */
import fc from "fast-check";
import type postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { createLogger } from "../../../core/log";
import {
  applyLinkViews,
  changeShape,
  dropColumns,
  loadCatalog,
  loadViews,
  onlyDropsColumns,
  planSchema,
  type Replica,
  startBuild,
  type TypeSettings,
} from "../../../core/replica";
import type { SourceTable } from "../../../core/source";
import { OptionalFeatureApplier } from "../../../core/sync/lease/apply-optional-features";
import { testEngine } from "../../support/engine";
import { putBuild } from "../../support/put-build";
import { readerOf, type TestReplica, testReplica } from "../../support/replica";
import { histories, World } from "../../support/schema-history";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 180_000 });

const HISTORIES = Number(process.env.HISTORIES ?? 4);
/** No history takes this long. */
const HISTORY_MS = 60_000;
const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

async function replicaOf(tables: SourceTable[]): Promise<TestReplica & { reader: postgres.Sql }> {
  const made = await testReplica();
  onTestFinished(() => made[Symbol.asyncDispose]());
  await become(made, tables);
  const reader = readerOf(made.readerUrl);
  onTestFinished(() => reader[Symbol.asyncDispose]());
  return Object.assign(made, { reader });
}

/** Applies these tables to the replica, as a sync does; built rows have two links in each array. */
async function become(
  { replica, epoch }: TestReplica,
  tables: SourceTable[],
  settings: TypeSettings = SETTINGS,
) {
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, { tables }, settings);
  await changeShape(replica, epoch, catalog, plan);
  for (const spec of plan.rebuild) {
    const build = await startBuild(replica, epoch, spec);
    const cells = spec.columns.map(({ name, columnType }) => [
      name,
      columnType === "text[]" ? ["recA", "recB"] : null,
    ]);
    await build.append([{ id: "rec1", created_time: "2024-05-01T12:34:56", ...Object.fromEntries(cells) }]);
    const live = (await loadCatalog(replica)).get(spec.tableId);
    expect(await putBuild({ replica, epoch }, build, live)).toBe(true);
  }
}

const viewNames = async (replica: Replica) => (await loadViews(replica)).linkViews.map(({ name }) => name);

test("a view has one row per link, with its place in the array, and can be joined", async () => {
  const { replica, epoch, reader } = await replicaOf([
    sourceTable("tbl1", "Orders", { Items: "links", Parent: "links", Note: "text" }),
  ]);
  expect(await viewNames(replica)).toEqual([]);
  await applyLinkViews(replica, epoch, true);
  expect(await viewNames(replica)).toEqual(["orders__items", "orders__parent"]);
  expect([...(await reader`select * from orders__items`)]).toEqual([
    { orders_id: "rec1", position: 1, items_id: "recA" },
    { orders_id: "rec1", position: 2, items_id: "recB" },
  ]);
  const [comment] = await reader`select obj_description('orders__items'::regclass) as text`;
  expect(comment!.text).toContain("orders.items");
  await expect(reader`delete from orders__items`).rejects.toMatchObject({ code: expect.any(String) });
  await applyLinkViews(replica, epoch, false);
  expect(await viewNames(replica)).toEqual([]);
  await expect(reader`select * from orders__items`).rejects.toMatchObject({ code: "42P01" });
});

test("a table is created and filled while another role changes views", async () => {
  const { replica, epoch } = await replicaOf([sourceTable("tbl1", "Orders", { Items: "links" })]);
  const spec = planSchema(new Map(), { tables: [sourceTable("tbl2", "Items", { Name: "text" })] }, SETTINGS)
    .rebuild[0]!;
  await replica.sql.begin(async (tx) => {
    await tx`select ${tx.unsafe(replica.swap)}.lock_for_links()`;
    const build = await startBuild(replica, epoch, spec);
    await build.append([{ id: "rec1", created_time: "2024-05-01T12:34:56", name: "Ann" }]);
    await build.discard();
  });
});

test("views are updated for renames, swapped names, dropped and retyped fields, and dropped tables", async () => {
  const test = await replicaOf([
    sourceTable("tbl1", "Orders", { Items: "links", Parent: "links" }),
    sourceTable("tbl2", "Items", { Orders: "links" }),
  ]);
  const { replica, epoch, reader } = test;
  await applyLinkViews(replica, epoch, true);
  // Names in a ring, of tables and of fields.
  await become(test, [
    sourceTable("tbl1", "Items", { Parent: "links", Items: "links" }),
    sourceTable("tbl2", "Orders", { Orders: "links" }),
  ]);
  expect(await viewNames(replica)).toEqual(["items__items", "items__parent", "orders__orders"]);
  expect((await reader`select * from items__items`).columns.map(({ name }) => name)).toEqual([
    "items_id",
    "position",
    "linked_items_id",
  ]);
  expect((await reader`select * from items__parent`).columns.map(({ name }) => name)).toEqual([
    "items_id",
    "position",
    "parent_id",
  ]);
  await become(test, [sourceTable("tbl1", "Items", { Parent: "text", Items: "links", More: "links" })]);
  expect(await viewNames(replica)).toEqual(["items__items", "items__more"]);
  expect(await reader`select * from items__more`).toHaveLength(2);
  const asText = { ...SETTINGS, linkedRecordsAsText: true };
  await become(
    test,
    [sourceTable("tbl1", "Items", { Parent: "text", Items: "links", More: "links" })],
    asText,
  );
  expect(await viewNames(replica)).toEqual([]);
  const leftovers = await reader`
    select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v' and relname !~ '^_'`;
  expect([...leftovers]).toEqual([]);
  expect(await reader`select * from _sync_issues`).toHaveLength(0);
});

test("links that become a lookup, whose column has the same type, lose their view, and get it back", async () => {
  const made = await replicaOf([sourceTable("tbl1", "Orders", { Items: "links" })]);
  await applyLinkViews(made.replica, made.epoch, true);
  for (const [type, names] of [
    ["lookup", []],
    ["links", ["orders__items"]],
  ] as const) {
    await become(made, [sourceTable("tbl1", "Orders", { Items: type })]);
    expect(await viewNames(made.replica)).toEqual(names);
    expect((await loadCatalog(made.replica)).get("tbl1")!.spec.columns).toMatchObject([
      { name: "items", type, columnType: "text[]" },
    ]);
  }
});

test("a view takes the name of one that is dropped in the same change, and the customer's objects over that one", async () => {
  const test = await replicaOf([
    sourceTable("tbl1", "Orders", { Items: "links" }),
    sourceTable("tbl2", "Things", { Items: "links", Parent: "links" }),
  ]);
  const { replica, epoch, role, reader } = test;
  await replica.sql.unsafe(
    `grant create on schema public to ${role}; alter role ${role} set default_transaction_read_only = off`,
  );
  await using customer = readerOf(test.readerUrl);
  await applyLinkViews(replica, epoch, true);
  await customer`create view public.mine as select orders_id as who, items_id as what from orders__items`;
  // The table under one is dropped, and another one gets its name.
  const things = sourceTable("tbl2", "Orders", { Items: "links", Parent: "links" });
  await become(test, [things]);
  expect(await viewNames(replica)).toEqual(["orders__items", "orders__parent"]);
  // The field under one is deleted, and another one of its table gets its name.
  things.fields.shift();
  things.fields[0]!.name = "Items";
  await become(test, [things]);
  expect(await viewNames(replica)).toEqual(["orders__items"]);
  expect(await reader`select orders_id, items_id from orders__items`).toHaveLength(2);
  expect(await customer`select who, what from mine`).toHaveLength(2);
  expect(await customer`select table_name from _sync_issues`).toHaveLength(0);
});

test("names fit into 63 bytes, are all different, and avoid the customer's own", async () => {
  const long = "Bücher ".repeat(12);
  const test = await replicaOf([
    sourceTable("tbl1", long, { [`${long} a`]: "links", [`${long} b`]: "links", X: "links" }),
    sourceTable("tbl2", "T", { [long]: "links", Taken: "links" }),
  ]);
  const { replica, epoch, role, reader } = test;
  await replica.sql.unsafe(
    `grant create on schema public to ${role}; alter role ${role} set default_transaction_read_only = off`,
  );
  await using customer = readerOf(test.readerUrl);
  await customer`create view public.t__taken as select 1 as mine`;
  await applyLinkViews(replica, epoch, true);
  const names = await viewNames(replica);
  expect(new Set(names).size).toBe(5);
  for (const name of names) {
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
    expect((await reader`select * from ${reader(name)}`).length).toBe(2);
  }
  expect(names).toContain("t__taken_2");
  expect([...(await customer`select * from t__taken`)]).toEqual([{ mine: 1 }]);
});

test("the customer's objects over a view survive its renames and rebuilds, and are restored with it", async () => {
  const test = await replicaOf([sourceTable("tbl1", "Orders", { Items: "links" })]);
  const { replica, epoch, role } = test;
  await replica.sql.unsafe(
    `grant create on schema public to ${role}; alter role ${role} set default_transaction_read_only = off`,
  );
  await using customer = readerOf(test.readerUrl);
  await applyLinkViews(replica, epoch, true);
  await customer`create view public.mine as select orders_id as who, items_id as what from orders__items`;
  await become(test, [sourceTable("tbl1", "Purchases", { Items: "links" })]);
  await become(test, [sourceTable("tbl1", "Purchases", { Things: "links", New: "text" })]);
  expect(await customer`select who, what from mine`).toHaveLength(2);
  await applyLinkViews(replica, epoch, false);
  await expect(customer`select * from mine`).rejects.toMatchObject({ code: "42P01" });
  expect(await customer`select table_name from _sync_issues`).toMatchObject([{ table_name: "public.mine" }]);
  // A view over "purchases__things" fits only one of that name and those columns.
  await applyLinkViews(replica, epoch, true);
  expect((await customer`select * from mine`).length).toBeGreaterThan(0);
  expect(await customer`select table_name from _sync_issues`).toHaveLength(0);
});

test("the columns of a view are dropped with it; a customer's view over it becomes an orphan", async () => {
  const files = { ...SETTINGS, attachmentViews: true };
  const table = sourceTable("tbl1", "Orders", { Scans: "attachment", Items: "links", Note: "text" });
  const test = await replicaOf([]);
  const { replica, epoch, role } = test;
  await applyLinkViews(replica, epoch, true);
  await become(test, [table], files);
  expect((await loadViews(replica)).attachmentViews).toMatchObject([
    { name: "orders__scans", tableId: "tbl1", fieldId: "fld0", columns: ["orders_id", "attachment_id"] },
  ]);
  const drop = async (wanted: SourceTable, settings: typeof files) => {
    const catalog = await loadCatalog(replica);
    const spec = planSchema(catalog, { tables: [wanted] }, settings).rebuild[0]!;
    const live = catalog.get("tbl1")!;
    expect(onlyDropsColumns(live.spec, spec)).toBe(true);
    await dropColumns(replica, epoch, live, spec);
  };
  const items = { ...table, fields: table.fields.filter(({ name }) => name !== "Items") };
  await drop(items, files);
  expect(await viewNames(replica)).toEqual([]);
  expect((await loadViews(replica)).attachmentViews).toHaveLength(1);
  await replica.sql.unsafe(
    `grant create on schema public to ${role}; alter role ${role} set default_transaction_read_only = off`,
  );
  await using customer = readerOf(test.readerUrl);
  await customer`create view public.mine as select filename from orders__scans`;
  await drop(items, { ...files, attachmentViews: false });
  expect(await customer`select table_name from _sync_issues`).toMatchObject([{ table_name: "public.mine" }]);
  await become(test, [items], files);
  expect(await customer`select filename from mine`).toHaveLength(0);
  await customer`drop view mine`;
  await drop(items, { ...files, attachmentViews: false });
  expect((await loadViews(replica)).attachmentViews).toEqual([]);
});

test("a query that locks a view delays only its removal", async () => {
  const { replica, epoch, reader, readerUrl } = await replicaOf([
    sourceTable("tbl1", "Orders", { Items: "links" }),
  ]);
  await applyLinkViews(replica, epoch, true);
  await reader.begin(async (query) => {
    await query`select count(*) from orders__items`;
    await expect(applyLinkViews(replica, epoch, false)).rejects.toMatchObject({ code: "replica_busy" });
    await using other = readerOf(readerUrl);
    expect(await other`select * from orders__items`).toHaveLength(2);
  });
  await applyLinkViews(replica, epoch, false);
  expect(await viewNames(replica)).toEqual([]);
});

test("a change that a query blocks is reported as not applied, and applied once nothing blocks it", async () => {
  const { replica, epoch, reader } = await replicaOf([sourceTable("tbl1", "Orders", { Items: "links" })]);
  const applier = new OptionalFeatureApplier(replica, epoch, createLogger("silent", "test"));
  const on = { linkViews: true, history: false, historyDays: 30, notify: false, aliasDays: 0 };
  expect([await applier.apply(on), applier.isApplied(on)]).toEqual([true, true]);
  const off = { ...on, linkViews: false };
  await reader.begin(async (query) => {
    await query`select count(*) from orders__items`;
    expect([await applier.apply(off), applier.isApplied(off)]).toEqual([false, false]);
  });
  expect(await viewNames(replica)).not.toEqual([]);
  expect([await applier.apply(off), await viewNames(replica)]).toEqual([true, []]);
});

test("unlocked objects are changed, however long a busy server takes for so many locks", async () => {
  const fields = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`Link ${index}`, "links" as const]),
  );
  const { replica, epoch } = await replicaOf([sourceTable("tbl1", "Orders", fields)]);
  await applyLinkViews(replica, epoch, true);
  expect(await viewNames(replica)).toHaveLength(40);
  const ours = replica.sql.unsafe(replica.swap);
  await replica.sql`
    create or replace function ${ours}.soon() returns timestamptz language sql as $$
      select clock_timestamp() + interval '1 ms' $$`;
  await replica.sql`select ${ours}.apply_link_views(${epoch}, false)`;
  expect(await viewNames(replica)).toEqual([]);
});

/** Columns of links, or of details of attachments, without a view, in one statement's snapshot. */
const unviewed = (sql: postgres.Sql) => sql<{ name: string }[]>`
  select t.relname || '.' || a.attname as name
  from pg_class as t
    join pg_attribute as a on a.attrelid = t.oid and not a.attisdropped
      and a.atttypid in ('text[]'::regtype, 'jsonb'::regtype)
    join pg_description as d on d.objoid = t.oid and d.objsubid = a.attnum
      and d.description ~ '\n\nfld\\d+(, links|/files)'
  where t.relkind = 'r' and t.relnamespace = 'public'::regnamespace and not exists (
    select from pg_class as v
    where v.relkind = 'v' and v.relnamespace = t.relnamespace
      and v.relname = t.relname || '__' || regexp_replace(a.attname, '__files$', ''))`;

test("through any history of the schema, every array of links and all attachments have their view at every moment", {
  timeout: 30_000 + HISTORIES * 5_000,
}, async () => {
  let looks = 0;
  const isKept = fc.asyncProperty(histories, async (history) => {
    await using engine = await testEngine();
    const world = new World(engine.source);
    await engine.sync();
    const { replica } = engine.replica;
    await applyLinkViews(replica, engine.input().epoch, true);
    let isOver = false;
    const wrong = new Set<string>();
    const watching = (async () => {
      await using reader = readerOf(engine.replica.readerUrl);
      while (!isOver) {
        for (const { name } of await unviewed(reader)) wrong.add(name);
        looks++;
      }
    })();
    try {
      for (const steps of history) {
        for (const step of steps) if (step.during === undefined) world.happen(step);
        let request = 0;
        engine.source.before = () => {
          for (const step of steps) if (step.during === request) world.happen(step);
          request++;
        };
        if (world.isRestarted) await engine.restart();
        world.isRestarted = false;
        await engine.sync({ settings: { ...world.settings } });
        engine.source.before = () => {};
      }
      expect((await engine.sync({ settings: { ...world.settings } })).error).toBeUndefined();
    } finally {
      isOver = true;
      await watching;
    }
    expect([...wrong]).toEqual([]);
    await expectViews(replica);
  });
  // An endless one is shown, too.
  await fc.assert(isKept, { numRuns: HISTORIES, endOnFailure: true, timeout: HISTORY_MS });
  expect(looks).toBeGreaterThan(HISTORIES * 5);
});

/** The views are those of the catalog's arrays of links and attachments, and show their contents. */
async function expectViews(replica: Replica): Promise<void> {
  const { sql } = replica;
  const { linkViews: views, attachmentViews } = await loadViews(replica);
  const wanted = [...(await loadCatalog(replica)).values()].flatMap(({ spec }) =>
    spec.columns
      .filter(({ type, columnType }) => type === "links" && columnType === "text[]")
      .map((column) => ({ spec, column, view: views.find(({ fieldId }) => fieldId === column.fieldId) })),
  );
  expect(views).toHaveLength(wanted.length);
  for (const { spec, column, view } of wanted) {
    const [from, to] = view!.columns;
    const shown = await sql.unsafe(
      `select "${from}" || ' ' || position || ' ' || "${to}" as link from public."${view!.name}"`,
    );
    const links = await sql.unsafe(
      `select t.id || ' ' || l.nth || ' ' || l.id as link
       from public."${spec.name}" as t, unnest(t."${column.name}") with ordinality as l (id, nth)`,
    );
    expect(shown.map(({ link }) => link).sort()).toEqual(links.map(({ link }) => link).sort());
  }
  const files = [...(await loadCatalog(replica)).values()].flatMap(({ spec }) =>
    spec.columns
      .filter(({ filesOf }) => filesOf !== undefined)
      .map(({ filesOf }) => ({ spec, column: spec.columns.find(({ fieldId }) => fieldId === filesOf)! })),
  );
  expect(attachmentViews).toHaveLength(files.length);
  for (const { spec, column } of files) {
    const view = attachmentViews.find(
      ({ tableId, fieldId }) => tableId === spec.tableId && fieldId === column.fieldId,
    )!;
    const [from] = view.columns;
    const shown = await sql.unsafe(
      `select "${from}" || ' ' || position || ' ' || url as file from public."${view.name}"`,
    );
    const urls = await sql.unsafe(
      `select t.id || ' ' || l.nth || ' ' || l.url as file
       from public."${spec.name}" as t, unnest(t."${column.name}") with ordinality as l (url, nth)`,
    );
    expect(shown.map(({ file }) => file).sort()).toEqual(urls.map(({ file }) => file).sort());
  }
}
