/** Old names answer for some days after a rename, each until another table or column needs it. */
import type postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  applyLinkViews,
  applySettings,
  claimEpoch,
  expireAliases,
  foreignNames,
  loadAliases,
  loadCatalog,
  planSchema,
} from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { testEngine } from "../../support/engine";
import { type OwnDatabase, ownDatabase } from "../../support/own-database";
import { readerOf } from "../../support/replica";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import type { PostgresVersion } from "../../support/servers/postgres-versions";
import { sourceRecord, sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

type Fields = Record<string, FieldType>;

/** `orders` with these fields, in a database whose old names answer for a week. */
async function withAliases(fields: Fields, server?: string, aliasDays = 7): Promise<OwnDatabase> {
  const shop = await ownDatabase(fields, server);
  await days(shop, aliasDays);
  return shop;
}

const days = ({ test: { replica, epoch } }: OwnDatabase, aliasDays: number) =>
  applySettings(replica, epoch, { history: false, notify: false, aliasDays });

/** The old names, as `old → current`. */
async function aliases({ test: { replica } }: OwnDatabase): Promise<string[]> {
  return (await loadAliases(replica)).map(({ name, table, column }) => `${name} → ${column ?? table}`);
}

/** What a lease does when it begins. */
async function runHousekeeping({ test: { replica, epoch } }: OwnDatabase): Promise<void> {
  await expireAliases(replica, epoch);
  await applyLinkViews(replica, epoch, false);
}

const valuesOf = async (sql: postgres.Sql, query: string) =>
  (await sql.unsafe(query).values()).map((row) => row[0]) as unknown[];

/** The long form: on each version. */
const OLDER: PostgresVersion[] = process.env.ALIASES === "all" ? ["15", "16", "17"] : ["15"];
const older = new Map<PostgresVersion, PostgresServer>();
beforeAll(async () => {
  for (const version of OLDER) older.set(version, await postgresServer({ version }));
}, 120_000);
afterAll(async () => {
  for (const server of older.values()) await server[Symbol.asyncDispose]();
});

describe.each(["18", ...OLDER] as const)("Postgres %s", (version) => {
  const make = (fields: Fields) => withAliases(fields, older.get(version)?.url);

  test("old names of a table and of its columns answer, through further renames and a swap", async () => {
    const shop = await make({ State: "text", Amount: "number" });
    const { customer } = shop;
    await shop.become({ Status: "text", Amount: "number" });
    await shop.become({ Condition: "text", Amount: "number" }, "Purchases");
    expect(await aliases(shop)).toEqual(["orders → purchases", "state → condition", "status → condition"]);
    const answers = async (value: string) => {
      for (const query of [
        "select purchases.state from purchases",
        'select "airtable"."purchases"."status" from "airtable"."purchases" order by "airtable"."purchases"."status"',
        `select p.condition from purchases as p where p.state is not null and p.status = '${value}'`,
        "select state from orders",
        "select orders.status from orders",
        `select condition from orders where state = '${value}'`,
      ]) {
        expect([query, await valuesOf(customer, query)]).toEqual([query, [value]]);
      }
    };
    await answers("five");
    // Only a column can be used without its table's name, and has a comment.
    if (version === "18") expect(await valuesOf(customer, "select state from purchases")).toEqual(["five"]);
    const [comment] = await customer`
      select col_description(attrelid, attnum) as text from pg_attribute
      where attrelid = 'purchases'::regclass and attname = 'state'`;
    expect(comment?.text).toBe(version === "18" ? "The old name of the column condition." : undefined);
    // Another type swaps in a new table.
    await shop.become({ Condition: "number", Amount: "number" }, "Purchases");
    await answers("5");
    expect(await aliases(shop)).toHaveLength(3);
    // A name that comes back is no longer an alias.
    await shop.become({ State: "number", Amount: "number" }, "Orders");
    expect(await aliases(shop)).toEqual(["purchases → orders", "condition → state", "status → state"]);
    expect(await valuesOf(customer, "select o.condition + o.state from orders as o")).toEqual(["10"]);
    expect(await valuesOf(customer, "select status from purchases")).toEqual(["5"]);
  });

  test("a database that was restored from a dump, in which all has other OIDs, keeps old names and their ends", async () => {
    const shop = await make({ State: "text" });
    const { customer, sql, test: made } = shop;
    await shop.become({ State: "text" }, "Purchases");
    await sql`update airtable_swap._aliases set view = view::bigint + 1000000`;
    await sql`update airtable_swap._state set incarnation = 'before the dump'`;
    made.epoch = await claimEpoch(made.replica);
    await runHousekeeping(shop);
    expect(await aliases(shop)).toEqual(["orders → purchases"]);
    expect(await valuesOf(customer, "select state from orders")).toEqual(["five"]);
    await days(shop, 0);
    await runHousekeeping(shop);
    expect(await sql`select to_regclass('airtable.orders') as view`).toEqual([{ view: null }]);
  });

  test("a new field or table takes the name, and an alias ends with its field or its time", async () => {
    const shop = await make({ State: "text", Amount: "number", Spare: "text" });
    const { customer, sql } = shop;
    await shop.become({ Status: "text", Total: "number", Rest: "text" }, "Purchases");
    expect(await aliases(shop)).toEqual([
      "orders → purchases",
      "amount → total",
      "spare → rest",
      "state → status",
    ]);
    // At the place of a field that is new: by its position.
    await shop.become({ Status: "text", Total: "number", Rest: "text", State: "number" }, "Purchases");
    expect(await aliases(shop)).toEqual(["orders → purchases", "amount → total", "spare → rest"]);
    expect(await valuesOf(customer, "select state from purchases")).toEqual(["5"]);
    const { replica } = shop.test;
    const catalog = await loadCatalog(replica);
    const tables = [
      sourceTable("tblO", "Purchases", { Status: "text", Total: "number" }),
      sourceTable("tblN", "Orders", { Name: "text" }),
    ];
    const settings = { linkedRecordsAsText: false, lookupsAsText: false };
    const plan = planSchema(catalog, { tables }, settings, await foreignNames(replica, []));
    expect(plan.rebuild.map(({ name }) => name)).toContain("orders");
    // A field is gone, and with it its old name.
    await shop.become({ Status: "text", Total: "number" }, "Purchases");
    expect(await aliases(shop)).toEqual(["orders → purchases", "amount → total"]);
    await sql.unsafe(`update ${replica.swap}._aliases set expires_at = now()`);
    await runHousekeeping(shop);
    expect(await aliases(shop)).toEqual([]);
    await expect(customer`select * from orders`).rejects.toMatchObject({ code: "42P01" });
    await expect(customer`select p.amount from purchases as p`).rejects.toMatchObject({ code: "42703" });
    expect(await sql.unsafe(`select * from ${replica.swap}._aliases`)).toEqual([]);
  });

  test("views of the customer's that use old names follow a swap, and keep working when the names end", async () => {
    const shop = await make({ State: "text", Amount: "number" });
    const { customer, sql } = shop;
    await shop.become({ Status: "text", Amount: "number" }, "Purchases");
    await customer.unsafe(`
      create view on_column as select p.state as x from purchases as p;
      create view on_table as select status as x from orders`);
    await shop.become({ Status: "text", Amount: "text" }, "Purchases");
    expect(await valuesOf(customer, "table on_column")).toEqual(["five"]);
    expect(await valuesOf(customer, "table on_table")).toEqual(["five"]);
    expect(await aliases(shop)).toEqual(["orders → purchases", "state → status"]);
    await sql.unsafe(`update ${shop.test.replica.swap}._aliases set expires_at = now()`);
    await runHousekeeping(shop);
    expect(await aliases(shop)).toEqual([]);
    expect(await valuesOf(customer, "table on_column")).toEqual(["five"]);
    // A view over the alias of a table ends with it, and is reported with its statements.
    const issues = await sql`select value from airtable._sync_issues where table_name = 'airtable.on_table'`;
    expect(issues[0]!.value).toMatch(/CREATE VIEW airtable\.on_table/i);
  });
});

test("without days, nothing is left of an old name; fewer days end it sooner", async () => {
  const shop = await withAliases({ State: "text" }, undefined, 0);
  await shop.become({ Status: "text" }, "Purchases");
  expect(await aliases(shop)).toEqual([]);
  await days(shop, 30);
  await shop.become({ Condition: "text" }, "Purchases");
  expect(await aliases(shop)).toEqual(["status → condition"]);
  await days(shop, 0);
  await runHousekeeping(shop);
  await expect(shop.customer`select status from purchases`).rejects.toMatchObject({ code: "42703" });
});

test("an object of the customer's keeps its name: no alias takes it", async () => {
  const shop = await withAliases({ State: "text" });
  const { customer } = shop;
  await shop.become({ Status: "text" }, "Purchases");
  await customer`alter table purchases add column extra text default 'theirs'`;
  await expect(shop.become({ Status: "text", Extra: "text" }, "Purchases")).rejects.toThrow("extra");
  await customer`alter table purchases rename column extra to mine`;
  await shop.become({ Status: "text", Extra: "text" }, "Purchases");
  const names = (await shop.live()).spec.columns.map(({ name }) => name);
  expect(names).toEqual(["status", "extra"]);
  await customer`drop view orders`;
  await customer`create view orders as select 'theirs' as x`;
  await shop.become({ Status: "number" }, "Purchases");
  expect(await valuesOf(customer, "select x from orders")).toEqual(["theirs"]);
  await shop.sql.unsafe(`update ${shop.test.replica.swap}._aliases set expires_at = now()`);
  await runHousekeeping(shop);
  expect(await valuesOf(customer, "select x from orders")).toEqual(["theirs"]);
});

test("a sync with old names reads no record again, adds and drops columns in place, and its history has no aliases", async () => {
  const engine = await testEngine();
  const table = sourceTable("tblT", "Things", { Name: "text", State: "text", Count: "number" });
  const cells = () => ({ fld0: "bolt", fld1: "new", fld2: 1 });
  const { records } = engine.source.add(table, [
    sourceRecord("rec1", cells()),
    sourceRecord("rec2", cells()),
  ]);
  const { replica } = engine.replica;
  const swap = replica.sql.unsafe(replica.swap);
  await applySettings(replica, engine.input().epoch, { history: true, notify: false, aliasDays: 7 });
  await engine.sync();
  const file = async () =>
    (
      await replica.sql`select pg_relation_filenode(oid) as file from pg_class
      where relnamespace = 'public'::regnamespace and relname in ('things', 'parts') and relkind = 'r'`
    )[0]!.file as number;
  const before = await file();
  table.fields[1]!.name = "Status";
  await engine.sync();
  await using reader = readerOf(engine.replica.readerUrl);
  expect(await reader`select state, status from things where id = 'rec1'`).toEqual([
    { state: "new", status: "new" },
  ]);
  expect(await file()).toBe(before);
  records.get("rec1")!.fields.fld1 = "done";
  await engine.sync();
  expect(await reader`select state from things where id = 'rec1'`).toEqual([{ state: "done" }]);
  // A field with the old name is added in place, and takes the name.
  table.fields.push({ id: "fld3", name: "State", type: "text", sourceType: "text" });
  for (const record of records.values()) record.fields.fld3 = "old";
  await engine.sync();
  expect(await file()).toBe(before);
  expect(await reader`select state, status from things where id = 'rec1'`).toEqual([
    { state: "old", status: "done" },
  ]);
  // A renamed field is deleted in place, with its old name, also where the table has an old name.
  table.name = "Parts";
  await engine.sync();
  table.fields[2]!.name = "Number";
  await engine.sync();
  table.fields.splice(2, 1);
  await engine.sync();
  expect(await file()).toBe(before);
  expect(await replica.sql`select name from ${swap}._aliases`).toEqual([{ name: "things" }]);
  expect(await reader`select status from things where id = 'rec1'`).toEqual([{ status: "done" }]);
  records.delete("rec2");
  await engine.sync();
  const history = await replica.sql<{ old: object | null; new: object | null }[]>`
    select old, new from public._sync_history order by id`;
  const keys = new Set(
    history.flatMap((row) => [...Object.keys(row.old ?? {}), ...Object.keys(row.new ?? {})]),
  );
  expect([...keys].sort()).toEqual(["count", "created_time", "name", "state", "status"]);
  expect(history.at(-1)!.old).toEqual({
    created_time: "2024-05-01T12:34:56",
    name: "bolt",
    state: "old",
    status: "new",
  });
});
