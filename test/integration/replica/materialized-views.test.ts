/** Materialized views that were created again are filled, whatever happens in between. */
import { expect, test, vi } from "vitest";
import { createLogger } from "../../../core/log";
import { planSchema, startBuild } from "../../../core/replica";
import { refreshViews } from "../../../core/replica/views";
import { OptionalFeatureApplier } from "../../../core/sync/lease/apply-optional-features";
import { until } from "../../support/poll";
import { putBuild } from "../../support/put-build";
import { readerOf } from "../../support/replica";
import { openShop, type Shop } from "../../support/shop";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const EXTRAS = { linkViews: false, history: false, historyDays: 30, notify: false, aliasDays: 0 };

/** A worker that dies right after a column was exchanged, with `names` over the table. */
async function killedAfterExchange(definition = "select name from orders"): Promise<Shop> {
  const shop = await openShop({ Name: "number" }, "plain admin");
  await shop.customer.unsafe(`create materialized view public.names as ${definition}`);
  const { replica, epoch } = shop.test;
  const live = await shop.live();
  const wanted = sourceTable("tblO", "Orders", { Name: "text" });
  const plan = planSchema(new Map([["tblO", live]]), { tables: [wanted] }, SETTINGS);
  const build = await startBuild(replica, epoch, plan.rebuild[0]!);
  await build.append([{ id: "rec1", created_time: "2024-05-01T12:34:56", name: "Ada" }]);
  await putBuild(shop.test, build, live);
  await expect(shop.customer`select name from names`).rejects.toThrow("has not been populated");
  return shop;
}

test("a lease fills the materialized views that the previous one left empty", async () => {
  const { test: made, customer } = await killedAfterExchange();
  const { replica, epoch } = made;
  await new OptionalFeatureApplier(replica, epoch, createLogger("silent", "test")).apply(EXTRAS);
  await until(async () => (await customer`select name from names`).length === 1, {
    what: "the view is filled",
    retryErrors: true,
  });
});

test("one that cannot be filled now is filled later, is reported, and blocks nothing for long", async () => {
  const { test: made, sql, customer } = await killedAfterExchange();
  await using other = readerOf(made.readerUrl);
  const held = await other.reserve();
  await held`begin`;
  await held`comment on materialized view names is 'held'`;
  await refreshViews(made.replica);
  expect(await sql`select table_name, value, reason from public._sync_issues`).toEqual([
    {
      table_name: "public.names",
      value: "refresh materialized view public.names;",
      reason: expect.stringContaining("lock timeout"),
    },
  ]);
  await held`commit`;
  held.release();
  await refreshViews(made.replica);
  expect(await customer`select name from names`).toEqual([{ name: "Ada" }]);
  expect(await sql`select from public._sync_issues`).toHaveLength(0);
  expect(await sql`select from public_swap._views_to_refresh`).toHaveLength(0);
});

test("one whose query takes too long is abandoned, and not tried again once its owner has filled it", async () => {
  const {
    test: made,
    sql,
    customer,
  } = await killedAfterExchange("select name, pg_sleep(2)::text as slept from orders");
  const from = performance.now();
  await refreshViews(made.replica, 200);
  expect(performance.now() - from).toBeLessThan(1900);
  expect(await sql`select reason from public._sync_issues`).toEqual([
    { reason: expect.stringContaining("statement timeout") },
  ]);
  await customer`refresh materialized view names`;
  await refreshViews(made.replica, 200);
  expect(await sql`select from public._sync_issues`).toHaveLength(0);
});

test("those that an in-place change restores are filled with it", async () => {
  const { sql, customer, become, drop } = await openShop({ Name: "text" }, "plain admin");
  await customer.unsafe(`
    create materialized view public.names as select name from orders;
    create materialized view public.also as select name from names;
    create materialized view public.broken as select 1 / (length(name) - 4) as x from orders with no data`);
  await drop();
  await become({ Name: "text" });
  expect(await customer`select name from also`).toEqual([{ name: "five" }]);
  expect(await sql`select table_name from public._sync_issues where record_id = ''`).toEqual([
    { table_name: "public.broken" },
  ]);
  await customer`drop materialized view broken`;
  await become({ Name: "text", New: "text" });
  expect(await sql`select from public._sync_issues`).toHaveLength(0);
});
