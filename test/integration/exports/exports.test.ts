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
  for (const [view, text] of [
    ["", "Link to another record"],
    ["?table=items", "Nut"],
    ["?as=sql", "create table &quot;public&quot;.&quot;orders&quot;"],
    ["?as=mermaid", "erDiagram"],
    ["?as=dbt", "version: 2"],
    ["?as=types", "export interface OrdersRow"],
    ["?as=types&lang=drizzle", "pg.pgTable(&quot;orders&quot;"],
  ]) {
    const page = await ask(`${path}/schema${view}`, { account });
    expect([view, page.status, page.text.includes(text!)]).toEqual([view, 200, true]);
  }
  expect((await ask(`${path}/schema?table=none`, { account })).status).toBe(404);
  expect((await ask(`${path}/schema.sql`, { account })).text).toContain('create table "public"."items" (');

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

  const types = await (await call(`/api/v1${path}/types?lang=kysely`)).json();
  expect(types).toMatchObject({ lang: "kysely", files: [{ path: "basetide-kysely.ts" }] });
  const { text } = types.files[0];
  expect(text).toContain("items: Copied<ItemsId[] | null>;");
  expect(await (await call(`/api/v1${path}/types/kysely/basetide-kysely.ts`)).text()).toBe(text);
  expect((await ask(`${path}/types/kysely/basetide-kysely.ts`, { account })).text).toBe(text);
  expect((await call(`/api/v1${path}/types?lang=cobol`)).status).toBe(422);
  expect((await call(`/api/v1${path}/types/ts/none.ts`)).status).toBe(404);

  const other = await createAccount(fleet.ctx.db, { email: "other@example.org", password: "correct horse" });
  const foreign = await createToken(fleet.ctx.db, other.id, "other");
  for (const name of ["dbt-sources", "er-diagram", "types?lang=ts", "types/ts/basetide.ts"]) {
    expect((await call(`/api/v1${path}/${name}`, foreign)).status).toBe(404);
  }
  for (const name of [
    "schema",
    "schema.sql",
    "dbt-sources.yml",
    "er-diagram.mmd",
    "types/ts/basetide.ts",
    "sql",
    "sql/names",
    "sql/history",
  ]) {
    expect((await ask(`${path}/${name}`, { account: other })).status).toBe(404);
  }
  const form = { sql: "select 1", name: "mine", as: "rows" };
  for (const name of [
    ...["sql", "sql/csv", "sql/rows", "sql/saved", "sql/saved/qry_00000000000000000000/delete"],
    "sql/history/clear",
  ]) {
    expect((await ask(`${path}/${name}`, { account: other, form })).status).toBe(404);
    expect((await ask(`${path}/${name}`, { account, form, from: "cross-site" })).status).toBe(403);
  }
});

test("a query whose reader leaves before its first row ends, whatever has asked for it", async () => {
  const ask = asker(consoleApp(fleet.ctx, authByHeader()));
  const account = await authAccount();
  const owner = await fleet.owner(base);
  const form = { sql: "select pg_sleep(100), 'left'" };
  const sessions = async () =>
    (await owner`select from pg_stat_activity where state = 'active' and query = ${form.sql}`).length;
  for (const place of ["sql", "sql/csv", "sql/rows"]) {
    const reader = new AbortController();
    const answer = ask(`/bases/${base.id}/${place}`, { account, form, signal: reader.signal });
    await until(sessions, { what: `the query of ${place} runs`, timeoutMs: 20_000 });
    reader.abort();
    expect([place, (await answer).text]).toEqual([
      place,
      expect.stringContaining("The query was stopped: it was cancelled"),
    ]);
    await until(async () => (await sessions()) === 0, { what: `the query of ${place} has ended` });
  }
});

test("the SQL editor runs, saves and downloads without a script, and escapes what it shows", async () => {
  const ask = asker(consoleApp(fleet.ctx, authByHeader()));
  const account = await authAccount();
  const path = `/bases/${base.id}/sql`;
  const sql = "select '<b>' as \"<i>\", name from items; select '</textarea>' from nowhere";
  const run = await ask(path, { account, form: { sql, as: "rows" } });
  expect(run.status).toBe(200);
  expect(run.text).toContain("&lt;b>");
  expect(run.text).toContain("&lt;i>");
  expect(run.text).not.toMatch(/<b>|<i>|<\/textarea> from/);
  expect(run.text).toContain("Statement 2: relation");
  const fragment = await ask(path, { account, form: { sql: "select 1", as: "plan" }, isHtmx: true });
  expect(fragment.text).toMatch(/^<section class="plan" aria-label="Plan">.*<strong>Result<\/strong>/);
  const empty = await ask(path, { account, form: { sql: " -- nothing", as: "rows" } });
  expect([empty.status, empty.text.includes("Enter a query first")]).toEqual([422, true]);

  const query = `select name, null, -1 as less, '=1' as "c,d" from items where 'a"b' <> ''`;
  const csv = await ask(`${path}/csv`, { account, form: { sql: query } });
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(csv.text).toBe('name,?column?,less,"c,d"\r\nNut,,-1,\'=1\r\n');
  const failed = await ask(`${path}/csv`, { account, form: { sql: "select oops" } });
  expect([failed.status, failed.text.includes("column &quot;oops&quot; does not exist")]).toEqual([
    422,
    true,
  ]);

  const several = "select 1; select n, null as nothing from generate_series(:from, 3) as n";
  const rows = await ask(`${path}/rows`, { account, form: { sql: several, ":from": "2", statement: "1" } });
  expect(rows.text).toBe('[["2",null],["3",null]]\n{"isCut":false}\n');
  for (const [form, message] of [
    [{ sql: several, statement: "1" }, "Enter values for :from, and run the query again"],
    [{ sql: "select 1", statement: "1" }, "A download has the result of one statement. Select one of them"],
    [{ sql: "select oops", statement: "0" }, 'column "oops" does not exist'],
  ] as const) {
    const refused = await ask(`${path}/rows`, { account, form });
    expect([refused.status, JSON.parse(refused.text)]).toEqual([422, { error: message }]);
  }
  const late = "select case when n > 700 then 1 / (n - 701) end from generate_series(1, 900) as n";
  const cut = (await ask(`${path}/rows`, { account, form: { sql: late, statement: "0" } })).text
    .trim()
    .split("\n");
  expect([JSON.parse(cut[0]!).length, JSON.parse(cut.at(-1)!)]).toEqual([500, { error: "division by zero" }]);

  const saved = await ask(`${path}/saved`, { account, form: { sql: query, name: "<Mine>" } });
  expect(saved.status).toBe(303);
  const shown = await ask(saved.headers.get("location")!, { account });
  expect(shown.text).toContain("&lt;Mine>");
  const id = /saved=(qry_\w+)/.exec(shown.text)![1];
  await ask(`${path}/saved/${id}/delete`, { account, form: {} });
  expect((await ask(path, { account })).text).not.toContain("Mine");
  const names = JSON.parse((await ask(`${path}/names`, { account })).text);
  expect(names).toMatchObject({
    schema: "public",
    relations: expect.arrayContaining([
      {
        name: "items",
        columns: [
          { name: "name", type: "text" },
          { name: "orders", type: "text[]" },
          { name: "id", type: "text" },
          { name: "created_time", type: "timestamp" },
        ],
      },
    ]),
  });
});

/** The account of the fleet, which owns the base. */
async function authAccount() {
  const { accountId } = await getBase(fleet.ctx.db, base.id);
  const account = (await listAccounts(fleet.ctx.db)).find(({ id }) => id === accountId);
  return account!;
}
