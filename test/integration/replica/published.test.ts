/** A published table gets new columns while its readers go on: subscribers see no column that is being filled. */
import postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  type CatalogTable,
  dropUnfinished,
  fillColumns,
  loadCatalog,
  mergeBuild,
  planSchema,
  settleDependents,
  startBuild,
} from "../../../core/replica";
import type { FieldType } from "../../../core/source";
import { ownDatabase } from "../../support/own-database";
import { until } from "../../support/poll";
import { PASSWORD, postgresServer } from "../../support/servers/postgres-server";
import type { PostgresVersion } from "../../support/servers/postgres-versions";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 120_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };
const OPTIONS = { seen: Number.MAX_SAFE_INTEGER, issues: [], most: 100, compared: null };
/** More than one statement writes. */
const ROWS = 2500;
const ids = Array.from({ length: ROWS }, (_, nth) => `rec${String(nth).padStart(4, "0")}`);
/** Postgres stores it apart from its row. */
const LONG = Array.from({ length: 500 }, () => crypto.randomUUID()).join();

/** Its database belongs to a role without superuser rights, which the service has. */
async function published(version: PostgresVersion) {
  const publisher = await postgresServer({ version, settings: { wal_level: "logical" } });
  onTestFinished(() => publisher[Symbol.asyncDispose]());
  const subscriber = await postgresServer({ version, settings: { wal_retrieve_retry_interval: "100ms" } });
  onTestFinished(() => subscriber[Symbol.asyncDispose]());
  const own = await ownDatabase({ Price: "number", Note: "text" }, publisher.url);
  const { test: made, sql, admin } = own;
  const build = async (type: "text" | "number") => {
    const catalog = await loadCatalog(made.replica);
    const fields: Record<string, FieldType> = { Price: type, Note: "text" };
    if (type === "text") fields.More = "text";
    const table = sourceTable("tblO", "Orders", fields);
    const live = catalog.get("tblO") as CatalogTable;
    const spec = planSchema(catalog, { tables: [table] }, SETTINGS).rebuild[0] ?? live.spec;
    const build = await startBuild(made.replica, made.epoch, spec);
    await build.append(
      ids.map((id, nth) => ({
        id,
        created_time: "2024-05-01T12:34:56",
        price: type === "number" ? nth : nth % 100 === 0 ? LONG + nth : nth % 7 === 0 ? null : `t${nth}`,
        note: "n",
        ...(type === "text" && { more: nth % 3 === 0 ? null : "more" }),
      })),
    );
    return { build, live };
  };
  const first = await build("number");
  expect((await mergeBuild(made.replica, made.epoch, first.build, first.live, OPTIONS)).merging).toBe(
    "merged",
  );
  await sql.unsafe("create index by_price on airtable.orders (price)");
  const there = postgres(subscriber.url, { max: 1, onnotice: () => {} });
  await there.unsafe(`create schema airtable;
    create table airtable.orders (id text primary key, created_time timestamp, price text, note text, more text, extra text)`);
  onTestFinished(async () => {
    await there.unsafe("drop subscription if exists following").catch(() => {});
    await there.end({ timeout: 1 });
  });
  const database = new URL(made.ownerUrl).pathname.slice(1);
  const rows = (on: postgres.Sql) =>
    on`select id, price::text as price, note, to_jsonb(o) ->> 'more' as more from airtable.orders as o order by id collate "C"`.then(
      (found) => [...found],
    );
  return {
    ...own,
    build,
    there,
    async subscribe() {
      await there.unsafe(`create subscription following
        connection 'host=127.0.0.1 port=${publisher.port} dbname=${database} user=postgres password=${PASSWORD}' publication one`);
      await this.same("the subscriber has copied the table");
    },
    same: (what: string) =>
      until(async () => Bun.deepEquals(await rows(there), await rows(sql)), { what, timeoutMs: 60_000 }),
    errors: async () =>
      (await there`select apply_error_count::int as n from pg_stat_subscription_stats`)[0]!.n,
    /** What hangs on the table. */
    state: async () =>
      (
        await admin`select 'airtable.orders'::regclass::oid::int as oid, (
          select jsonb_agg(jsonb_build_array(p.pubname, array(select n from unnest(p.attnames) as n order by n), p.rowfilter) order by p.pubname)
          from pg_publication_tables as p) as publications`
      )[0]!,
  };
}

test("a table that refuses its rows keeps no other table's from subscribers", async () => {
  const { customer, sql, test: made } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'no'; end $$;
    create trigger refuse before update on orders for each row execute function refuse()`);
  await sql.unsafe(`insert into airtable_swap._rows_to_send (table_id, columns, is_retyped)
    values ('tblO', '{3}', true), ('tblZ', '{3}', true)`);
  expect(await settleDependents(made.replica)).toBe(false);
  expect(await sql`select table_id from airtable_swap._rows_to_send`).toEqual([{ table_id: "tblO" }]);
  await customer`drop trigger refuse on orders`;
  expect(await settleDependents(made.replica)).toBe(true);
  expect(await sql`select from airtable_swap._rows_to_send`).toEqual([]);
});

test.each(["15", "18"] as const)(
  "Postgres %s: a subscriber and a slot get the values of a column that was filled ahead, and no other column",
  async (version) => {
    const own = await published(version);
    const { test: made, sql, admin, build } = own;
    await sql.unsafe(`create publication one for table airtable.orders where (id <> 'rec');
      create publication two for table airtable.orders (id, price)`);
    await own.subscribe();
    await admin`select pg_create_logical_replication_slot('reader', 'pgoutput')`;
    const before = await own.state();
    const names = (columns: string[]) => [
      ["one", [...columns].toSorted(), expect.stringContaining("rec")],
      ["two", ["id", "price"], null],
    ];
    expect(before.publications).toEqual(names(["id", "created_time", "price", "note"]));
    // A lease that ends while it fills.
    const stopped = await build("text");
    const stop = new Error("stopped");
    const edit = async (note: string) =>
      void (await sql`update airtable.orders set note = ${note} where id = ${ids[1]!}`);
    await expect(
      fillColumns(made.replica, made.epoch, stopped.build, stopped.live, () => {
        throw stop;
      }),
    ).rejects.toBe(stop);
    await edit("while it is filled");
    await own.same("a row follows while the column is filled");
    await dropUnfinished(made.replica, made.epoch);
    expect(await own.state()).toEqual(before);
    const next = await build("text");
    const { replica, epoch } = made;
    expect((await mergeBuild(replica, epoch, next.build, next.live, OPTIONS)).merging).toBe("large");
    await fillColumns(replica, epoch, next.build, next.live);
    await edit("filled");
    expect((await mergeBuild(replica, epoch, next.build, next.live, OPTIONS)).merging).toBe("merged");
    await next.build.discard();
    await sql.unsafe("alter table airtable.orders add column extra text default 'x'");
    expect(await settleDependents(replica)).toBe(true);
    await own.same("the subscriber has the new columns");
    expect(await own.state()).toEqual({
      oid: before.oid,
      publications: names(["id", "created_time", "price", "note", "more", "extra"]),
    });
    expect(await own.errors()).toBe(0);
    const [seen] = await admin`
      select string_agg(encode(data, 'escape'), '') as text, count(*)::int as changes
      from pg_logical_slot_get_binary_changes('reader', null, null, 'proto_version', '1', 'publication_names', 'one')`;
    expect(seen!.changes).toBeGreaterThan(ROWS);
    expect(seen!.text).not.toMatch(/_filling_|_kept_/);
    expect(await settleDependents(replica)).toBe(true);
    expect(await sql`select from airtable_swap._rows_to_send`).toHaveLength(0);
  },
);

test.each([
  ["of another role", "create publication one for table airtable.orders"],
  ["of a schema", "create publication one for tables in schema airtable"],
])("a publication %s, which has all columns, gets the values in one transaction", async (_, publication) => {
  const own = await published("18");
  const { test: made, admin, build } = own;
  await admin.unsafe(publication);
  if (publication.includes("schema"))
    await own.there.unsafe(`create table airtable._sync_meta (started_at timestamptz, completed_at timestamptz, duration_last interval);
      create table airtable._sync_issues (table_name text, record_id text, field text, value text, reason text, seen_at timestamptz)`);
  await own.subscribe();
  const before = await own.state();
  const next = await build("text");
  expect((await mergeBuild(made.replica, made.epoch, next.build, next.live, OPTIONS)).merging).toBe("merged");
  await settleDependents(made.replica);
  await own.same("the subscriber has the new columns");
  expect((await own.state()).oid).toBe(before.oid);
  expect(await own.errors()).toBe(0);
});
