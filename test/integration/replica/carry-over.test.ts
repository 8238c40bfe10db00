/** A customer's objects on our tables in the customer's own database, through changes of the columns that they use. */
import type postgres from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { applySettings, foreignNames, planSchema, startBuild } from "../../../core/replica";
import { ownDatabase } from "../../support/own-database";
import { putBuild } from "../../support/put-build";
import type { TestReplica } from "../../support/replica";
import { postgresServer } from "../../support/servers/postgres-server";
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

test("roles that may read a table may read it after each change, with no other rights than before", async () => {
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
      reason: expect.stringContaining("its column was dropped"),
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
  await become({ Note: "date", Price: "number" });
  expect((await issues(sql)).map(({ field }) => field)).toEqual(["index by_some"]);
  // A better match.
  await other.unsafe(`
    create function public.any_text(v numeric) returns text language plpgsql immutable as
      $$ begin insert into public.ran default values; return v; end $$`);
  await become({ Note: "number", Price: "number" });
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
    create policy nothing on orders as restrictive for insert to ${otherRole} with check (false);
    create policy cheap on orders as restrictive for select to ${otherRole} using (price < 3)`);
  const seen = () => other`select id from airtable.orders`.then((rows) => rows.map(({ id }) => id));
  await become({ Price: "number", Note: "text", New: "text" });
  await sql`insert into airtable.orders (id, created_time, price) values ('rec2', now(), 1)`;
  expect(await seen()).toEqual(["rec2"]);
  expect(await issues(sql)).toEqual([]);
  await become({ Note: "text", Newer: "text" });
  expect(await sql`select from airtable.orders`).not.toHaveLength(0);
  expect(await seen()).toEqual([]);
  const lost = await issues(sql);
  expect(lost.map(({ field }) => field)).toEqual(["policy all_of_them", "policy cheap", "policy nothing"]);
  // Also one that uses no column is shown as it was.
  const shown = lost.map(({ value }) => value);
  expect(shown).toContainEqual(
    expect.stringMatching(/as restrictive for insert to \S+\s+with check \(false\)/),
  );
});

test("foreign keys follow a field that gets another type, and are validated", async () => {
  const { customer, become, sql, test: made } = await ownDatabase({ Day: "date" });
  await customer.unsafe(`alter table orders add constraint day_once unique (day);
    create table mine (day date references orders (day) on delete cascade deferrable);
    insert into mine values ('2024-05-01')`);
  await become({ Day: "date_time" });
  // The cell is that of noon: the key of the existing row is violated.
  await nextLease(made);
  expect((await issues(sql)).map(({ what, reason }) => [what, reason.slice(0, 61)])).toEqual([
    [
      "constraint mine_day_fkey on table airtable.mine",
      "is enforced only for new rows since the last change of its ta",
    ],
  ]);
  await customer`delete from mine`;
  await expect(customer`insert into mine values ('2024-05-01')`).rejects.toMatchObject({ code: "23503" });
  await customer`alter table mine validate constraint mine_day_fkey`;
  await nextLease(made);
  expect(await issues(sql)).toEqual([]);
});

test("what another role has on a column that gets another type keeps the old one, which is reported until it is gone", async () => {
  const {
    customer,
    other,
    otherRole,
    become,
    sql,
    test: made,
  } = await ownDatabase({ Day: "date", Price: "number" });
  const kept = async () =>
    (
      await sql`select attname from pg_attribute where attrelid = 'airtable.orders'::regclass and attname ~ '^_kept_' and not attisdropped`
    ).length;
  await customer.unsafe(`alter table orders add constraint day_once unique (day);
    grant usage on schema airtable to ${otherRole}; grant select, references on orders to ${otherRole}`);
  await other.unsafe(`create schema theirs; create table theirs.days (day date references airtable.orders (day));
    create view theirs.prices as select price from airtable.orders`);
  await become({ Day: "date_time", Price: "text" });
  expect(await customer`select price from orders`).toEqual([{ price: "five" }]);
  expect(await other`select price::int from theirs.prices`).toEqual([{ price: 5 }]);
  expect(await kept()).toBe(2);
  expect(await issues(sql)).toMatchObject(
    [
      {
        what: "constraint days_day_fkey on table theirs.days",
        value: expect.stringMatching(
          /^alter table theirs.days drop constraint days_day_fkey;\nalter table theirs.days add constraint/,
        ),
        reason: expect.stringMatching(
          /^it still uses a column of airtable.orders as it was before the last change \(_kept_\d+\)/,
        ),
      },
      {
        what: "constraint day_once on table airtable.orders",
        reason: expect.stringContaining("_kept_"),
      },
      { what: "theirs.prices", value: expect.stringMatching(/^drop view theirs.prices;\ncreate view/) },
    ].toSorted((a, b) => (a.what < b.what ? -1 : 1)),
  );
  // They stop no other change.
  await become({ Days: "date_time", Price: "text", New: "text" }, "Purchases");
  await other.unsafe("drop table theirs.days; drop view theirs.prices");
  await customer.unsafe("alter table purchases drop constraint day_once");
  await nextLease(made);
  expect(await issues(sql)).toEqual([]);
  expect(
    await sql`select attname from pg_attribute where attrelid = 'airtable.purchases'::regclass and attname ~ '^_kept_' and not attisdropped`,
  ).toEqual([]);
});

test("a table that the source no longer has is kept for the objects on it, and comes back with them", async () => {
  const {
    customer,
    other,
    otherRole,
    become,
    drop,
    sql,
    test: made,
  } = await ownDatabase({ Price: "number" });
  await customer.unsafe(`create index by_price on orders (price); alter table orders add column mine text default 'm';
    grant usage on schema airtable to ${otherRole}; grant select on orders to ${otherRole}`);
  await other.unsafe("create schema theirs; create view theirs.prices as select price from airtable.orders");
  const oid = async () => (await sql`select to_regclass('airtable.orders')::oid::int as oid`)[0]!.oid;
  const before = await oid();
  await drop();
  expect(await oid()).toBe(null);
  expect(await other`select price::int from theirs.prices`).toEqual([{ price: 5 }]);
  expect(await issues(sql)).toMatchObject([
    {
      what: expect.stringMatching(/^airtable_swap\._kept_\d+$/),
      field: "objects",
      reason: expect.stringMatching(
        /^the table airtable.orders no longer exists.*column mine.*, index airtable.by_price, view theirs.prices$/,
      ),
    },
    { what: "theirs.prices" },
  ]);
  await nextLease(made);
  await become({ Price: "text", New: "text" });
  expect(await oid()).toBe(before);
  expect(await other`select price, new, mine from airtable.orders`).toEqual([
    { price: "five", new: "five", mine: "m" },
  ]);
  expect((await issues(sql)).map(({ what }) => what)).toEqual(["theirs.prices"]);
  // Given up.
  await other`drop view theirs.prices`;
  await drop();
  await customer`delete from _sync_issues`;
  await nextLease(made);
  expect(await sql`select from pg_class where relname ~ '^_kept_[0-9]+$'`).toEqual([]);
});

test("a table that is kept for its objects outlives others of its name, and a restore of a dump", async () => {
  const { customer, become, drop, sql, test: made } = await ownDatabase({ Price: "number" });
  const keep = (value: string) =>
    customer.unsafe(`alter table orders add column mine text; update orders set mine = '${value}'`);
  await keep("first");
  await drop();
  await become({ Price: "number" }, "Orders", "tblN");
  await keep("second");
  await become({ Price: "number" }, "Sales", "tblN");
  await nextLease(made);
  await become({ Price: "number" }, "Orders", "tblN");
  await drop();
  await nextLease(made);
  expect(await issues(sql)).toMatchObject([{ field: "objects" }, { field: "objects" }]);
  // In a restored database, tables have other OIDs than their names say.
  await sql.unsafe(`do $$
    declare
      one oid;
    begin
      for one in select relation from airtable_swap._kept_tables loop
        execute format('alter table airtable_swap._kept_%s rename to _kept_%s', one, one::bigint + 100000);
        update airtable_swap._kept_tables set relation = one::bigint + 100000 where relation = one;
        update airtable._sync_issues set value = format('drop table airtable_swap._kept_%s;', one::bigint + 100000)
        where value = format('drop table airtable_swap._kept_%s;', one);
      end loop;
    end $$`);
  await nextLease(made);
  for (const [id, value] of [
    ["tblO", "first"],
    ["tblN", "second"],
  ]) {
    await become({ Price: "number" }, "Orders", id);
    expect(await customer`select price::int, mine from orders`).toEqual([{ price: 5, mine: value }]);
    await customer`alter table orders drop column mine`;
    await drop();
  }
  expect(await issues(sql)).toEqual([]);
});

test("a table that comes back under another name is in its publications again, and no other table is", async () => {
  const { customer, become, drop, sql, admin } = await ownDatabase({ Price: "number" });
  await customer.unsafe(
    `alter table orders add column mine text; create publication one for table orders (id, price)`,
  );
  const published = () =>
    admin`select tablename as table from pg_publication_tables`.then((rows) => [...rows]);
  await drop();
  expect(await published()).toEqual([]);
  await become({ Price: "number" }, "Orders", "tblN");
  await become({ Price: "number" }, "Sales");
  expect(await published()).toEqual([{ table: "sales" }]);
  expect(await issues(sql)).toEqual([]);
});

test("a check that existing rows violate after their column got another type is reported", async () => {
  const { customer, become, sql, test: made } = await ownDatabase({ Price: "number" });
  await customer`alter table orders add constraint short check (octet_length(price::text) < 2)`;
  await become({ Price: "text" });
  await nextLease(made);
  expect(await issues(sql)).toMatchObject([
    {
      what: "constraint short on table airtable.orders",
      value: "alter table airtable.orders validate constraint short",
      reason: expect.stringMatching(/^is enforced only for new rows since the last change of its table: /),
    },
  ]);
  expect(await sql`select from airtable_swap._references_to_check`).toEqual([]);
});

test.each(["15", "18"] as const)(
  "Postgres %s: an old column that another role's view keeps takes no part in new rows",
  async (version) => {
    const server = await postgresServer({ version });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const { customer, other, otherRole, become, sql } = await ownDatabase({ Day: "date" }, server.url);
    await customer.unsafe(`alter table orders alter column day set not null;
      grant usage on schema airtable to ${otherRole}; grant select on orders to ${otherRole}`);
    await other.unsafe("create schema theirs; create view theirs.days as select day from airtable.orders");
    await become({ Day: "date_time" });
    expect(await other`select day::text from theirs.days`).toEqual([{ day: "2024-05-01" }]);
    await sql`insert into airtable.orders (id, created_time, day) values ('rec2', now(), now())`;
  },
);

test("what cannot be dropped does not keep a lease from beginning", async () => {
  const {
    customer,
    other,
    otherRole,
    become,
    drop,
    admin,
    sql,
    test: made,
  } = await ownDatabase({
    Day: "date",
  });
  await customer.unsafe(
    `grant usage on schema airtable to ${otherRole}; grant select on orders to ${otherRole}`,
  );
  await other.unsafe("create schema theirs; create view theirs.days as select day from airtable.orders");
  await become({ Day: "date_time" });
  await other.unsafe("drop view theirs.days");
  await admin.unsafe(`create schema app; create function app.guard() returns event_trigger language plpgsql as
      $$ begin raise exception '% needs a ticket', tg_tag; end $$;
    create event trigger guard on ddl_command_start execute function app.guard()`);
  await nextLease(made);
  await admin.unsafe("drop event trigger guard");
  await customer`alter table orders add column mine text`;
  await drop();
  await customer`delete from _sync_issues`;
  await admin.unsafe("create event trigger guard on ddl_command_start execute function app.guard()");
  await nextLease(made);
  const kept = () => sql`select from pg_class where relname ~ '^_kept_[0-9]+$'`;
  expect(await kept()).toHaveLength(1);
  await admin.unsafe("drop event trigger guard");
  await nextLease(made);
  expect(await kept()).toEqual([]);
});

test("a table of very many fields, whose storage we set, is dropped as any other", async () => {
  const texts = Array.from({ length: 500 }, (_, index) => [`Text ${index}`, "text"] as const);
  const { sql, drop } = await ownDatabase(Object.fromEntries(texts));
  expect(await sql`select reloptions from pg_class where oid = 'airtable.orders'::regclass`).toEqual([
    { reloptions: ["toast_tuple_target=8160"] },
  ]);
  await drop();
  expect(await sql`select from pg_class where relname ~ '^_kept_[0-9]+$'`).toEqual([]);
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
  await expect(putBuild({ replica, epoch }, build, undefined)).rejects.toMatchObject({
    code: "shape_changed",
  });
});
