/** An old name is kept only where it does no harm: to the table's own rows, and to what other names mean. */
import type postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../../core/log";
import {
  applyLinkViews,
  applyRowImages,
  applySettings,
  expireAliases,
  loadAliases,
  loadLostAliases,
} from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { OptionalFeatureApplier } from "../../../core/sync/lease/apply-optional-features";
import { type OwnDatabase, ownDatabase } from "../../support/own-database";
import { type PostgresServer, postgresServer } from "../../support/servers/postgres-server";
import type { PostgresVersion } from "../../support/servers/postgres-versions";

vi.setConfig({ testTimeout: 60_000 });

/** `orders` in a database of the customer's whose old names answer for a week. */
async function shopOn(fields: Record<string, FieldType>, server?: string): Promise<OwnDatabase> {
  const shop = await ownDatabase(fields, server);
  await days(shop, 7);
  return shop;
}

const days = ({ test: { replica, epoch } }: OwnDatabase, aliasDays: number) =>
  applySettings(replica, epoch, { history: false, notify: false, aliasDays });

async function oldNames({ test: { replica } }: OwnDatabase) {
  const [aliases, lost] = [await loadAliases(replica), await loadLostAliases(replica)];
  return { kept: aliases.map(({ name }) => name), lost: lost.map(({ name, obstacle }) => [name, obstacle]) };
}

/** A sync's write, and a client's. */
async function write(shop: OwnDatabase, cells: object, epoch: number | null = shop.test.epoch) {
  const rows = [{ id: "rec1", created_time: "2024-05-01T12:34:56", ...cells }];
  const images = { epoch, readVersion: Number.MAX_SAFE_INTEGER, rows, gone: [], issues: [] };
  return applyRowImages(shop.test.replica, await shop.live(), images);
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
  const make = (fields: Record<string, FieldType>) => shopOn(fields, older.get(version)?.url);
  const asFull = (shop: OwnDatabase) =>
    shop.customer.unsafe("alter table orders replica identity full; create publication cdc for table orders");

  test("a table that is published with a full replica identity can be written after a rename", async () => {
    const shop = await make({ State: "text", Amount: "number" });
    await asFull(shop);
    await shop.become({ Status: "text", Amount: "number" });
    expect(await write(shop, { status: "six", amount: 6 })).toMatchObject({ updated: 1 });
    const { lost } = await oldNames(shop);
    if (version === "18") expect(lost).toEqual([["state", expect.stringMatching(/replica identity/)]]);
    else expect(await valuesOf(shop.customer, "select o.state from orders as o")).toEqual(["six"]);
    // Swapped: the identity and the publication come along.
    await shop.become({ Status: "text", Amount: "text" });
    expect(await write(shop, { status: "seven", amount: "7" })).toMatchObject({ updated: 1 });
  });

  test.each([
    ["a sync's", false],
    ["a client's", true],
  ])(
    "so can one whose identity becomes full later: %s write is applied, and the old name ends",
    async (_, isClients) => {
      const shop = await make({ State: "text", Amount: "number" });
      await shop.become({ Status: "text", Amount: "number" });
      await shop.customer`create view on_old as select o.state as x from orders as o`;
      await shop.customer`create view on_new as select o.status as x from orders as o`;
      await asFull(shop);
      const epoch = isClients ? null : shop.test.epoch;
      expect(await write(shop, { status: "six", amount: 6 }, epoch)).toMatchObject({ updated: 1 });
      expect(await valuesOf(shop.customer, "select x from on_new")).toEqual(["six"]);
      if (version !== "18") return;
      expect((await oldNames(shop)).lost).toEqual([["state", expect.stringMatching(/replica identity/)]]);
      // The view over the old name is reported with its statements, and is there again once the old name is.
      const issue = () => shop.customer`select value from _sync_issues where table_name = 'airtable.on_old'`;
      expect(await issue()).toMatchObject([
        { value: expect.stringMatching(/CREATE VIEW airtable\.on_old/i) },
      ]);
      await shop.customer`alter table orders replica identity default`;
      await shop.become({ Status: "text", Amount: "text" });
      expect(await oldNames(shop)).toEqual({ kept: ["state"], lost: [] });
      expect(await valuesOf(shop.customer, "select x from on_old")).toEqual(["five"]);
      expect(await issue()).toEqual([]);
    },
  );

  test("old names of functions leave their functions as they were, and are listed", async () => {
    const shop = await make({ Count: "number", Round: "number", Lead: "text", Name: "text", Mine: "number" });
    const { customer } = shop;
    await customer`create function mine(integer) returns integer language sql as 'select $1 + 1'`;
    await customer`create function aside(orders) returns text language sql as 'select ''theirs'''`;
    await shop.become({ Hours: "number", Rounds: "number", Leads: "text", Title: "text", Ours: "number" });
    for (const [query, value] of [
      ["select count(o) from orders as o", "1"],
      ["select count(o.*) from orders as o", "1"],
      ["select count('x') from orders", "1"],
      ["select round('1.5')::text", "2"],
      ["select coalesce(lead(o.hours) over (), 7)::text from orders as o", "7"],
      ["select mine('1')::text", "2"],
      ["select name('x')::text", "x"],
      ["select aside(o) from orders as o", "theirs"],
    ] as const)
      expect([query, ...(await valuesOf(customer, query)).map(String)]).toEqual([query, value]);
    const { kept, lost } = await oldNames(shop);
    if (version === "18")
      return expect([kept, lost]).toEqual([["count", "lead", "mine", "name", "round"], []]);
    expect([kept, lost.map(([name]) => name)]).toEqual([[], ["count", "lead", "mine", "name", "round"]]);
    expect(lost[0]![1]).toMatch(/function .*count\(/);
  });

  test("a function of the customer's that takes the table's row is neither replaced nor dropped", async () => {
    const shop = await make({ State: "text" });
    const { customer } = shop;
    await customer`create function state(orders) returns text language sql as 'select ''theirs'''`;
    await shop.become({ Status: "text" });
    expect(await valuesOf(customer, "select state(o) from orders as o")).toEqual(["theirs"]);
    await days(shop, 0);
    expect(await expireAliases(shop.test.replica, shop.test.epoch)).toBe(true);
    await shop.become({ Status: "number" });
    expect(await valuesOf(customer, "select state(o) from orders as o")).toEqual(["theirs"]);
  });
});

test("the end of all old names is tried until it is done, and reported while queries hold the table", async () => {
  const shop = await shopOn({ State: "text" });
  const { replica, epoch } = shop.test;
  await shop.become({ Status: "text" });
  const applier = new OptionalFeatureApplier(replica, epoch, createLogger("silent", "test"));
  const none = { linkViews: false, history: false, historyDays: 30, notify: false, aliasDays: 0 };
  const issues = () => shop.customer`select table_name, reason from _sync_issues where field = 'old names'`;
  const holds = await shop.other.reserve();
  await shop.customer.unsafe(
    `grant usage on schema airtable to ${shop.otherRole}; grant select on orders to ${shop.otherRole}`,
  );
  await holds`begin`;
  await holds`select from airtable.orders`;
  await applier.apply(none);
  expect(applier.isApplied(none)).toBe(false);
  expect(await issues()).toMatchObject([
    {
      table_name: "orders",
      reason: expect.stringContaining(`locked by ${shop.otherRole} (postgres.js, pid `),
    },
  ]);
  await holds`commit`;
  holds.release();
  // As a lease does, every second.
  await vi.waitUntil(
    async () => {
      await applier.apply(none);
      return applier.isApplied(none);
    },
    { timeout: 30_000, interval: 200 },
  );
  expect(await issues()).toEqual([]);
  await expect(shop.customer`select state from orders`).rejects.toMatchObject({ code: "42703" });
  await applyLinkViews(replica, epoch, false);
});
