/** A customer's objects on our tables in the customer's own database, through rebuilds. */
import type postgres from "postgres";
import { expect, test, vi } from "vitest";
import { applySettings, foreignNames, installReplica, planSchema, startBuild } from "../../../core/replica";
import { ownDatabase } from "../../support/own-database";
import type { TestReplica } from "../../support/replica";
import { sourceTable } from "../../support/source-records";

vi.setConfig({ testTimeout: 60_000 });

const SETTINGS = { linkedRecordsAsText: false, lookupsAsText: false };

/** How a lease begins. */
const nextLease = ({ replica, epoch }: TestReplica) =>
  applySettings(replica, epoch, { history: false, notify: false });

const issues = (sql: postgres.Sql) =>
  sql<{ what: string; field: string; value: string; reason: string }[]>`
    select table_name as what, field, value, reason from airtable._sync_issues where record_id = '' order by 1, 2`.then(
    (rows) => [...rows],
  );

test("roles that may read a table may read it after each rebuild, with no other rights than before", async () => {
  const { customer, other, otherRole, ownerRole, become, sql } = await ownDatabase({
    Price: "number",
    Note: "text",
  });
  await customer.unsafe(
    `grant usage on schema airtable to ${otherRole}; grant select (id, price) on orders to ${otherRole}`,
  );
  await become({ Price: "number", Note: "text", New: "text" });
  expect(await other`select price::int from airtable.orders`).toEqual([{ price: 5 }]);
  await expect(other`select note from airtable.orders`).rejects.toMatchObject({ code: "42501" });
  await customer.unsafe(`revoke all on orders from ${otherRole}; revoke all (id, price) on orders from ${otherRole};
    grant select on orders to ${otherRole} with grant option`);
  await become({ Price: "number", Note: "text" });
  expect(await other`select note from airtable.orders`).toEqual([{ note: "five" }]);
  expect(
    await sql`select has_table_privilege(${otherRole}, 'airtable.orders', 'select with grant option') as may`,
  ).toEqual([{ may: true }]);
  // Global defaults do not restore what was revoked.
  await customer.unsafe(`alter default privileges for role ${ownerRole} grant all on tables to ${otherRole};
    revoke all on orders from ${otherRole}`);
  await become({ Price: "number", Note: "text", Newer: "text" });
  await expect(other`select note from airtable.orders`).rejects.toMatchObject({ code: "42501" });
  expect(await issues(sql)).toEqual([]);
});

test("the roles in the schema's default privileges may read a new table", async () => {
  const { customer, other, otherRole, ownerRole, become, drop, sql } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`grant usage on schema airtable to ${otherRole};
    alter default privileges for role ${ownerRole} in schema airtable grant all on tables to ${otherRole}`);
  await drop();
  await become({ Price: "number" });
  expect(await other`select price::int from airtable.orders`).toEqual([{ price: 5 }]);
  expect(await sql`select has_table_privilege(${otherRole}, 'airtable.orders', 'insert') as may`).toEqual([
    { may: false },
  ]);
});

test("a view of our own role survives one rebuild after the other", async () => {
  const { customer, become, sql, test: made } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`create view airtable.prices as select id, price from orders;
    create materialized view airtable.total as select sum(price) as total from orders`);
  await become({ Price: "number", New: "text" });
  await become({ Price: "number", New: "number" });
  await become({ Price: "number" });
  expect(await customer`select price::int from airtable.prices`).toEqual([{ price: 5 }]);
  // As left by an earlier version.
  await customer.unsafe(`revoke create on schema airtable_swap from current_user`);
  await installReplica(made.ownerUrl, { schema: "airtable", role: made.role });
  await become({ Price: "number", Newer: "text" });
  expect(await issues(sql)).toEqual([]);
});

test("an index that no longer fits is reported until it exists again", async () => {
  const { test: made, customer, become, sql } = await ownDatabase({ Price: "number", Note: "text" });
  await customer.unsafe(`
    create index orders_lower on orders (lower(note)) where price > 0;
    create unique index "Orders by ""id"" USING" on orders using btree (id text_pattern_ops)`);
  const indexes = () =>
    sql`select indexname, indexdef from pg_indexes where schemaname = 'airtable' and tablename = 'orders'
      and indexname !~ '^_' order by 1`.then((rows) => [...rows]);
  const before = await indexes();
  await become({ Price: "number", Note: "text", New: "text" });
  expect(await indexes()).toEqual(before);
  expect(await issues(sql)).toEqual([]);
  await become({ Price: "number" });
  expect(await issues(sql)).toMatchObject([
    {
      what: "orders",
      field: "index orders_lower",
      reason: expect.stringContaining("its column note was dropped or renamed"),
    },
  ]);
  const [lost] = await issues(sql);
  await become({ Price: "number", Note: "text" });
  await customer.unsafe(lost!.value);
  await nextLease(made);
  expect(await issues(sql)).toEqual([]);
  expect(await indexes()).toEqual(before);
});

test("a function that another role substitutes is never run with our rights, and the objects that used it are reported", async () => {
  const { customer, become, sql, other, admin, ownerRole } = await ownDatabase({
    Note: "text",
    Price: "number",
  });
  await admin.unsafe(`grant create on schema public to public`);
  await other.unsafe(`
    create table public.ran (who text default current_user);
    grant all on public.ran to public;
    create function public.any_text(v anyelement) returns text language sql immutable as 'select $1::text'`);
  await customer.unsafe(`
    create index by_any on orders (public.any_text(note));
    create index by_some on orders (id) where public.any_text('a'::text) <> note;
    alter table orders add constraint fits check (public.any_text(note) <> '');
    alter table orders add column copied text generated always as (public.any_text(note)) stored;
    create policy all_of_them on orders using (public.any_text(note) <> '');
    create trigger noted after insert on orders for each row when (public.any_text(new.note) <> '')
      execute function suppress_redundant_updates_trigger()`);
  await become({ Note: "text", Price: "number", New: "text" });
  expect(await issues(sql)).toEqual([]);
  // A better match.
  await other.unsafe(`
    create function public.any_text(v text) returns text language plpgsql immutable as
      $$ begin insert into public.ran default values; return v; end $$`);
  await become({ Note: "text", Price: "number" });
  expect(await sql`select * from public.ran where who = ${ownerRole}`).toEqual([]);
  expect((await issues(sql)).map(({ field }) => field)).toEqual([
    "column copied",
    "constraint fits",
    "index by_any",
    "index by_some",
    "policy all_of_them",
    "trigger noted",
  ]);
});

test("rows that a policy hides stay hidden, also if the policy cannot be created again", async () => {
  const { customer, other, otherRole, become, sql } = await ownDatabase({ Price: "number", Note: "text" });
  await customer.unsafe(`
    grant usage on schema airtable to ${otherRole}; grant select on orders to ${otherRole};
    alter table orders enable row level security;
    create policy all_of_them on orders to ${otherRole} using (true);
    create policy cheap on orders as restrictive for select to ${otherRole} using (price < 3)`);
  const seen = () => other`select id from airtable.orders`.then((rows) => rows.map(({ id }) => id));
  await become({ Price: "number", Note: "text", New: "text" });
  await sql`insert into airtable.orders (id, created_time, price) values ('rec2', now(), 1)`;
  expect(await seen()).toEqual(["rec2"]);
  expect(await issues(sql)).toEqual([]);
  await become({ Note: "text", Newer: "text" });
  expect(await sql`select from airtable.orders`).not.toHaveLength(0);
  expect(await seen()).toEqual([]);
  expect((await issues(sql)).map(({ field }) => field)).toEqual(["policy all_of_them", "policy cheap"]);
});

test("foreign keys of the owner move to the new table; those of others stay on the old one, which is reported", async () => {
  const {
    customer,
    other,
    otherRole,
    become,
    sql,
    live,
    test: made,
  } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`
    create table mine (id text references orders (id) on delete cascade deferrable);
    insert into mine values ('rec1');
    grant usage on schema airtable to ${otherRole}; grant references on orders to ${otherRole}`);
  await become({ Price: "number", New: "text" });
  await sql`insert into airtable.orders (id, created_time) values ('rec2', now())`;
  await customer`insert into mine values ('rec2')`;
  await expect(customer`insert into mine values ('rec3')`).rejects.toMatchObject({ code: "23503" });
  await sql`delete from airtable.orders where id = 'rec2'`;
  expect(await customer`select id from mine`).toEqual([{ id: "rec1" }]);

  await customer.unsafe(`grant references on orders to ${otherRole}`);
  await other.unsafe(
    `create schema theirs; create table theirs.lines (id text references airtable.orders (id))`,
  );
  await become({ Price: "number", New: "text", Newer: "text" });
  await become({ Price: "number" });
  expect((await live()).spec.columns).toHaveLength(1);
  expect(await customer`select count(*)::int as n from mine`).toEqual([{ n: 1 }]);
  const told = (await issues(sql)).filter(({ field }) => field === "");
  expect(told).toEqual([
    {
      what: "constraint lines_id_fkey on table theirs.lines",
      field: "",
      value: expect.stringMatching(/^alter table theirs.lines drop constraint lines_id_fkey;/),
      reason: "it still uses airtable.orders as it was before the last change: drop it and create it again",
    },
  ]);
  // Without it the old tables are dropped.
  await other`drop table theirs.lines`;
  await become({ Price: "number", Newest: "text" });
  await nextLease(made);
  expect((await issues(sql)).filter(({ field }) => field === "")).toEqual([]);
  expect(
    await sql`select relname from pg_class where relnamespace = 'airtable_swap'::regnamespace and relname ~ '^_kept_[0-9]+$'`,
  ).toEqual([]);
});

test("a view of a role that the service cannot act as prevents no rebuild, rename or drop, and is reported", async () => {
  const { customer, other, otherRole, become, drop, sql } = await ownDatabase({ Price: "number" });
  await customer.unsafe(
    `grant usage on schema airtable to ${otherRole}; grant select on orders to ${otherRole}`,
  );
  await other.unsafe(`create schema theirs; create view theirs.prices as select price from airtable.orders`);
  await become({ Price: "number", New: "text" });
  expect(await customer`select new from orders`).toEqual([{ new: "five" }]);
  expect((await issues(sql)).map(({ what }) => what)).toEqual(["theirs.prices"]);
  await become({ Amount: "number", New: "text" }, "Purchases");
  await drop();
  expect(await sql`select to_regclass('airtable.purchases') as gone`).toEqual([{ gone: null }]);
  expect(await other`select price::int from theirs.prices`).toEqual([{ price: 5 }]);
});

test("if a type or a domain has a table's name, the table gets another name", async () => {
  const { customer, test: made, become, live, sql } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`create type airtable.purchases as enum ('a'); create domain airtable.sales as text`);
  await become({ Price: "number" }, "Purchases");
  await become({ Price: "number", New: "text" }, "Sales");
  expect((await live()).spec.name).toBe("sales_2");
  expect(await sql`select price::int from airtable.sales_2`).toEqual([{ price: 5 }]);
  // One that is created while the table is being built.
  const { replica, epoch } = made;
  const tables = [sourceTable("tblS", "Shipments", { Price: "number" })];
  const plan = planSchema(new Map(), { tables }, SETTINGS, await foreignNames(replica, []));
  const build = await startBuild(replica, epoch, plan.rebuild[0]!);
  await customer`create domain airtable.shipments as text`;
  await expect(build.swapIn(undefined, Number.MAX_SAFE_INTEGER, [])).rejects.toMatchObject({
    code: "shape_changed",
  });
});
