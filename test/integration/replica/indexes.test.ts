/** Indexes that the setting requests: created while readers and writers are active, and kept through every change. */
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createToken, listAccounts } from "../../../core/control/accounts";
import { type Base, getBase } from "../../../core/control/bases";
import {
  applyIndexes,
  changeShape,
  loadCatalog,
  mergeBuild,
  planSchema,
  startBuild,
  type WantedIndex,
} from "../../../core/replica";
import type { Row } from "../../../core/replica/spec";
import type { FieldType } from "../../../core/source";
import { asker, authByHeader } from "../../support/console";
import { testEngine } from "../../support/engine";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { readerOf, type TestReplica, testReplica } from "../../support/replica";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const wanted = (...fields: (string | [string, "trigram"])[]): WantedIndex[] =>
  fields.map((field) =>
    typeof field === "string"
      ? { tableId: "tblO", fieldId: field, kind: "default" }
      : { tableId: "tblO", fieldId: field[0], kind: field[1] },
  );

/** Applies these fields to `orders`, as a sync does; `way`: how a new table goes live. */
async function become(
  { replica, epoch }: TestReplica,
  fields: Record<string, FieldType>,
  way: "swap" | "merge" = "swap",
): Promise<void> {
  const catalog = await loadCatalog(replica);
  const plan = planSchema(catalog, { tables: [sourceTable("tblO", "Orders", fields)] }, SETTINGS);
  await changeShape(replica, epoch, catalog, plan);
  const spec = plan.rebuild[0];
  if (!spec) return;
  const live = (await loadCatalog(replica)).get("tblO");
  const build = await startBuild(replica, epoch, spec);
  const row: Row = { id: "rec1", created_time: "2024-05-01T12:34:56" };
  for (const { name, columnType } of spec.columns) row[name] = columnType === "text[]" ? ["x"] : null;
  await build.append([row]);
  if (way === "merge") {
    const options = { seen: Number.MAX_SAFE_INTEGER, issues: [], most: null, compared: null };
    expect((await mergeBuild(replica, epoch, build, live!, options)).merging).toBe("merged");
  } else expect(await putBuild({ replica, epoch }, build, live)).toBe(true);
}

const indexesOf = async ({ replica: { sql } }: Pick<TestReplica, "replica">, table = "orders") =>
  (
    await sql<{ text: string }[]>`
      select regexp_replace(indexdef, '^.* USING ', '') as text from pg_indexes
      where schemaname = 'public' and tablename = ${table} and indexname ~ '_idx$' order by 1`
  )
    .map(({ text }) => text)
    .toSorted();
const issuesOf = async ({ replica: { sql } }: TestReplica) => [
  ...(await sql`select table_name as "table", field, reason from public._sync_issues where record_id = '' order by 2`),
];

test("they are kept through renames, new columns, rebuilds and types, and dropped when no longer wanted", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  const { sql } = replica;
  await become(made, { Name: "text", Tags: "multiple_select", Price: "number" });
  const all = wanted("fld0", "fld1", "fld2", "created_time");
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  const first = ["btree (created_time)", "btree (name)", "btree (price)", "gin (tags)"];
  expect(await indexesOf(made)).toEqual(first);
  const oids = () =>
    sql`select indexrelid from pg_index where indrelid = 'public.orders'::regclass order by 1`;
  const before = [...(await oids())];
  // Nothing is created twice.
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  await become(made, { Title: "text", Tags: "multiple_select", Price: "number" });
  await become(made, { Title: "text", Tags: "multiple_select", Price: "number", More: "text" }, "merge");
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  expect([...(await oids())]).toEqual(before);
  expect(await indexesOf(made)).toEqual(first.map((text) => text.replace("name", "title")).toSorted());
  // Rebuilt, without a column and with one of another type.
  await become(made, { Title: "text", Tags: "text" });
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (created_time)", "btree (tags)", "btree (title)"]);
  expect(await issuesOf(made)).toEqual([]);
  // The customer's own stay.
  await sql`create index mine_idx on public.orders (title, tags)`;
  expect(await applyIndexes(replica, epoch, wanted("fld0"))).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (title)", "btree (title, tags)"]);
  expect(await applyIndexes(replica, epoch, [])).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (title, tags)"]);
  // Deleted ones leave no trace.
  expect(await applyIndexes(replica, epoch, [])).toBe(true);
  expect([...(await sql`select name from public_swap._indexes`)]).toEqual([]);
});

test("an interrupted index is created again; one that cannot be created is an issue until it can", async () => {
  await using made = await testReplica();
  const { replica, epoch } = made;
  const { sql } = replica;
  await become(made, { Name: "text", Price: "number" });
  const all = wanted(["fld0", "trigram"], "fld1");
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (price)"]);
  expect(await issuesOf(made)).toEqual([
    { table: "orders", field: "index on name", reason: expect.stringContaining("create extension pg_trgm") },
  ]);
  await sql`create extension pg_trgm schema public`;
  await using admin = readerOf(
    Object.assign(new URL(inject("postgresUrl")), { pathname: new URL(made.ownerUrl).pathname }).href,
  );
  await admin`update pg_index set indisvalid = false where indexrelid = 'public."_tblO_fld1_idx"'::regclass`;
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (price)", "gin (name public.gin_trgm_ops)"]);
  expect([...(await sql`select from pg_index where not indisvalid`)]).toHaveLength(0);
  expect(await issuesOf(made)).toEqual([]);
  await become(made, { Name: "number", Price: "number" });
  expect(await applyIndexes(replica, epoch, all)).toBe(true);
  expect(await indexesOf(made)).toEqual(["btree (price)"]);
  expect(await issuesOf(made)).toMatchObject([
    { field: "index on name", reason: expect.stringContaining("type text") },
  ]);
});

test("a value that is too long for an index costs the index, not the row", async () => {
  const engine = await testEngine();
  const people = engine.source.add(sourceTable("tblO", "Orders", { Name: "text" }), [
    sourceRecord("rec1", { fld0: "short" }),
  ]);
  await engine.sync();
  const { replica } = engine.replica;
  const { epoch } = engine.cache;
  expect(await applyIndexes(replica, epoch, wanted("fld0"))).toBe(true);
  // Nothing that Postgres could compress.
  const long = Buffer.from(crypto.getRandomValues(new Uint8Array(20_000))).toString("base64");
  people.records.set("rec2", sourceRecord("rec2", { fld0: long }));
  expect((await engine.sync()).error).toBe(undefined);
  expect(await engine.rows("orders")).toMatchObject([{ name: "short" }, { name: long }]);
  expect(await indexesOf(engine.replica)).toEqual([]);
  await applyIndexes(replica, epoch, wanted("fld0"));
  expect(await issuesOf(engine.replica)).toMatchObject([
    { field: "index on name", reason: expect.stringMatching(/index row/) },
  ]);
});

let fleet: Fleet;
let base: Base;

beforeAll(async () => {
  fleet = await startFleet({
    sandbox: { settings: { rateLimitOff: true } },
    env: { SCHEMA_POLL_SECONDS: "4" },
  });
  const sourceId = fleet.sandbox.control.createBase({
    name: "Shop",
    tables: [
      {
        name: "Items",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Price", type: "number", options: { precision: 2 } },
        ],
        records: [{ fields: { Name: "Nut", Price: 1 } }],
      },
    ],
  });
  base = await fleet.connect(sourceId, { turbo: true });
  await fleet.synced(base.id);
}, 60_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

test("the API and the console set them by name, refuse unknown names, and show the current names", async () => {
  const app = consoleApp(fleet.ctx, authByHeader());
  const account = (await listAccounts(fleet.ctx.db)).find(({ id }) => id === base.accountId)!;
  const token = await createToken(fleet.ctx.db, account.id, "indexes");
  const patch = async (indexes: unknown) => {
    const answer = await app.handle(
      new Request(`http://console/api/v1/bases/${base.id}`, {
        method: "PATCH",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ indexes }),
      }),
    );
    const body = (await answer.json()) as { settings?: { indexes: unknown }; error?: { message: string } };
    return [answer.status, body.settings?.indexes ?? body.error?.message];
  };
  expect(await patch([{ table: "nothing", column: "name" }])).toEqual([
    422,
    "There is no table nothing: the base has items",
  ]);
  expect(await patch([{ table: "items", column: "gone" }])).toEqual([
    422,
    "Table items has no column gone: it has name, price",
  ]);
  expect((await patch([{ table: "items", column: "id" }]))[0]).toBe(422);
  expect((await patch([{ table: "items", column: "price", kind: "trigram" }]))[0]).toBe(422);
  expect((await patch([{ table: "items", column: "name", kind: "trigram" }]))[1]).toContain("pg_trgm");
  const twice = { table: "items", column: "name" };
  expect((await patch([twice, twice]))[1]).toContain("twice");
  expect(await patch([twice])).toEqual([200, [{ ...twice, kind: "default" }]]);
  const owner = await fleet.owner(base);
  const names = async () =>
    // One that is being dropped has no definition.
    (
      await owner`
        select indexdef from pg_indexes
        where tablename = 'items' and indexname ~ '_idx$' and indexdef is not null order by 1`
    )
      .map(({ indexdef }) => indexdef.replace(/^.* USING /, ""))
      .toSorted();
  await until(async () => (await names()).length === 1, { what: "the index exists", timeoutMs: 60_000 });

  const ask = asker(app);
  const path = `/bases/${base.id}/settings/indexes`;
  const wrong = await ask(path, { account, form: { value: "items.name\nitems price" } });
  expect([wrong.status, wrong.text.includes("Write “items price” as table.column")]).toEqual([422, true]);
  expect((await ask(path, { account, form: { value: " items.name\r\n\r\nitems.price " } })).status).toBe(303);
  // One is removed or added, whatever the others are by now.
  expect((await ask(path, { account, form: { remove: "items.name" } })).status).toBe(303);
  expect((await ask(path, { account, form: { table: "items", column: "name" } })).status).toBe(303);
  const { settings } = await getBase(fleet.ctx.db, base.id);
  expect(settings.indexes.map(({ column }) => column)).toEqual(["price", "name"]);
  await until(async () => (await names()).length === 2, { what: "both exist", timeoutMs: 60_000 });

  const [items] = fleet.sandbox.control.dump(base.sourceBaseId).tables;
  fleet.sandbox.control.renameField(base.sourceBaseId, items!.id, "Price", "Cost");
  await until(
    async () =>
      (await getBase(fleet.ctx.db, base.id)).settings.indexes.some(({ column }) => column === "cost"),
    { what: "the setting has the new name", timeoutMs: 60_000 },
  );
  expect(await names()).toEqual(["btree (cost)", "btree (name)"]);
  const page = await ask(`/bases/${base.id}/settings`, { account });
  expect(page.text).toContain("items.cost");
  expect(await patch([])).toEqual([200, []]);
  await until(async () => (await names()).length === 0, { what: "none is left", timeoutMs: 60_000 });
});
