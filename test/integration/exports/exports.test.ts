/** The analytics extras as customers enable and disable them, and the console's description of a base's tables. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { consoleApp } from "../../../apps/console/app";
import { createAccount, createToken, listAccounts } from "../../../core/control/accounts";
import { type Base, getBase, updateSettings } from "../../../core/control/bases";
import { asker, authByHeader } from "../../support/console";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 60_000 });

let fleet: Fleet;
let base: Base;

beforeAll(async () => {
  fleet = await startFleet({ sandbox: { settings: { rateLimitOff: true } } });
  const { control } = fleet.sandbox;
  const sourceId = control.createBase({
    name: "Shop",
    tables: [
      {
        name: "Items",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "Nut" } }],
      },
      {
        name: "Orders",
        fields: [{ name: "Name", type: "singleLineText" }],
        records: [{ fields: { Name: "First" } }],
      },
    ],
  });
  const [items, orders] = control.dump(sourceId).tables;
  control.addField(sourceId, orders!.id, {
    name: "Items",
    type: "multipleRecordLinks",
    options: { linkedTableId: items!.id },
  });
  base = await fleet.connect(sourceId, { turbo: true });
  await fleet.synced(base.id);
}, 60_000);
afterAll(() => fleet?.[Symbol.asyncDispose]());

test("enabled exports exist within seconds, and disabled ones are removed, while the base is synced", async () => {
  const reader = await fleet.reader(base);
  const there = async () => {
    const [row] = await reader`
      select to_regclass('public.orders__items') is not null as views,
        to_regclass('public._sync_history') is not null as history`;
    return row;
  };
  expect(await there()).toEqual({ views: false, history: false });
  await updateSettings(fleet.ctx, base, { linkViews: true, history: true, notify: true, historyDays: 5 });
  await until(async () => (await there())?.views && (await there())?.history, {
    what: "the optional features exist",
  });
  const told: string[] = [];
  await reader.listen("basetide", (payload) => told.push(payload));
  const { control } = fleet.sandbox;
  const orders = control.dump(base.sourceBaseId).tables.find(({ name }) => name === "Orders")!;
  control.createRecords(base.sourceBaseId, orders.id, [{ fields: { Name: "Second" } }]);
  await until(() => told.length > 0, { what: "the change is notified", timeoutMs: 20_000 });
  const { table, ids } = JSON.parse(told[0]!);
  expect(table).toBe("orders");
  expect(await reader`select record_id, operation, new ->> 'name' as name from _sync_history`).toMatchObject([
    { record_id: ids[0], operation: "insert", name: "Second" },
  ]);
  await updateSettings(fleet.ctx, base, { linkViews: false, history: false, notify: false });
  await until(async () => (await there())?.views === false, { what: "the views are gone" });
  // Until its changes are old.
  expect(await there()).toEqual({ views: false, history: true });
});

test("the console and its API describe the tables for dbt and as a diagram, to the base's account only", async () => {
  const app = consoleApp(fleet.ctx, authByHeader());
  const ask = asker(app);
  const account = await authAccount();
  const token = await createToken(fleet.ctx.db, account.id, "analyst");
  const call = (path: string, bearer = token) =>
    app.handle(new Request(`http://console${path}`, { headers: { authorization: `Bearer ${bearer}` } }));
  const path = `/bases/${base.id}`;
  const page = await ask(`${path}/analysts`, { account });
  expect(page.status).toBe(200);
  expect(page.text).toContain("erDiagram");

  const sources = await call(`/api/v1${path}/dbt-sources`);
  expect([sources.status, sources.headers.get("content-type")]).toEqual([200, "text/yaml; charset=utf-8"]);
  const yaml = await sources.text();
  expect(parse(yaml).sources).toMatchObject([
    { name: "shop", database: base.database.name, tables: [{ name: "items" }, { name: "orders" }] },
  ]);
  expect((await ask(`${path}/dbt-sources.yml`, { account })).text).toBe(yaml);
  const diagram = await (await call(`/api/v1${path}/er-diagram`)).text();
  expect(diagram).toMatch(/"orders" }o--o{ "items" : "items"/);
  expect((await ask(`${path}/er-diagram.mmd`, { account })).text).toBe(diagram);

  const other = await createAccount(fleet.ctx.db, { email: "other@example.org", password: "correct horse" });
  const foreign = await createToken(fleet.ctx.db, other.id, "other");
  for (const name of ["dbt-sources", "er-diagram"]) {
    expect((await call(`/api/v1${path}/${name}`, foreign)).status).toBe(404);
  }
  for (const name of ["analysts", "dbt-sources.yml", "er-diagram.mmd"]) {
    expect((await ask(`${path}/${name}`, { account: other })).status).toBe(404);
  }
});

/** The account of the fleet, which owns the base. */
async function authAccount() {
  const { accountId } = await getBase(fleet.ctx.db, base.id);
  const account = (await listAccounts(fleet.ctx.db)).find(({ id }) => id === accountId);
  return account!;
}
