/** S2. No customer code runs with our rights, whichever of the customer's objects we create again. */
import type postgres from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { superuserUrl } from "../../support/admin";
import { dumpTable, readerOf } from "../../support/replica";
import { openShop, type ServiceRole } from "../../support/shop";

/** Records the role that the customer's code runs as. A row in `ran` names the role: the customer's own is expected. */
const WITNESS = `
  create table public.ran (who text default current_user, is_superuser text default current_setting('is_superuser'));
  grant insert, select on public.ran to public;
  create function public.evil(v text) returns boolean language plpgsql as
    $$ begin insert into public.ran default values; return true; end $$;
  create function public.evil_text(v text) returns text language plpgsql immutable as
    $$ begin perform public.evil(v); return v; end $$;
  create domain public.trap as text check (public.evil(value));
  create type public.holder as (x public.trap);
  create table public.trapped (x public.trap);
  create operator public.=== (leftarg = text, rightarg = text, function = pg_catalog.texteq);
  create function public.evil_t() returns trigger language plpgsql as
    $$ begin perform public.evil(''); return new; end $$;
  delete from public.ran;`;

/** View → its definition, each with customer code that parsing or creating it again could run. */
const views: Record<string, string> = {
  composite: `create view public.composite as select '(a)'::public.holder as h, name from orders`,
  array: `create view public.array as select '{"(a)"}'::public.holder[] as h, name from orders`,
  domains: `create view public.domains as select '{a}'::public.trap[] as h, name from orders`,
  row_type: `create view public.row_type as select '(a)'::public.trapped as h, name from orders`,
  column: `create view public.column as select t.x, name from orders, public.trapped as t`,
  condition: `create view public.condition as select name from orders where public.evil(name)`,
  operator: `create view public.operator as select name operator(public.===) 'a' as same from orders`,
  above: `create view public.above as select h from public.composite`,
  index: `create materialized view public.index as select name from orders with no data;
    create index on public.index (public.evil_text(name))`,
  rule: `create view public.rule as select name from orders;
    create rule r as on insert to public.rule do instead insert into public.trapped values (public.evil_text('a'))`,
};

const ranAs = (sql: postgres.Sql) =>
  sql`select distinct who from public.ran order by 1`.then((rows) => rows.map(({ who }) => who));

describe.each<ServiceRole>(["superuser", "plain admin"])("the service is a %s", (service) => {
  test("a view that depends on the customer's code is not created by us, but reported and left to the customer", async () => {
    const shop = await openShop({ Name: "text" }, service);
    const { sql, customer, become } = shop;
    await customer.unsafe(WITNESS);
    for (const statement of Object.values(views)) await customer.unsafe(statement);
    await customer`delete from public.ran`;
    await become({ Name: "date", New: "text" });
    expect(await ranAs(customer)).toEqual([]);
    expect(await customer`select new from orders`).toEqual([{ new: "five" }]);
    const issues = await sql<{ name: string; value: string; reason: string }[]>`
      select table_name as name, value, reason from public._sync_issues where record_id = '' order by 1`;
    const told = Object.keys(views).map((name) =>
      `public."${name}"`.replace(/"(?!array|column)(\w+)"/, "$1"),
    );
    expect(issues.map(({ name }) => name)).toEqual(told.sort());
    for (const { reason } of issues) {
      expect(reason).toMatch(
        /^Basetide does not create this view again because it uses .*, which Basetide did not create\. Run|does not exist$/,
      );
    }
    // Nothing of it is tried at the next change either.
    await become({ Name: "text" });
    expect(await ranAs(customer)).toEqual([]);
    // The statements in the issue create the view, with its index and rule; then the issue is removed.
    for (const { value } of [...issues].sort(
      (a, b) => Number(/above/.test(a.name)) - Number(/above/.test(b.name)),
    )) {
      await customer.unsafe(value);
    }
    await customer`delete from public.ran`;
    await become({ Name: "text" }, "Orders of ours");
    expect(await ranAs(customer)).toEqual([]);
    await become({ Name: "text" }, "Orders");
  });

  test("a definition that has come to mean the customer's code since it was saved runs with the customer's rights, and is dropped again", async () => {
    const { test: made, sql, customer, become, drop } = await openShop({ Name: "text" }, service);
    await customer.unsafe(`${WITNESS}
      create type public.pair as (x text);
      create view public.innocent as select '(a)'::public.pair as h, name from orders`);
    await drop();
    expect(await sql`select name from public_swap._orphaned_views`).toEqual([{ name: "innocent" }]);
    await customer.unsafe(`drop type public.pair; create type public.pair as (x public.trap)`);
    await customer`delete from public.ran`;
    await become({ Name: "text" });
    // The insert itself is rolled back with the view.
    expect((await ranAs(customer)).filter((who) => who !== made.role)).toEqual([]);
    expect(await sql`select to_regclass('public.innocent') as view`).toEqual([{ view: null }]);
    await become({ Name: "text", New: "text" });
    expect(await customer`select new from orders`).toEqual([{ new: "five" }]);
  });

  test("the sandbox discards what the owner's code creates: roles, settings, temporary tables, cursors and deferred triggers", async () => {
    const { test: made, sql, customer, become } = await openShop({ Name: "text" }, service);
    await customer.unsafe(`${WITNESS}
      create view public.innocent as select '(a)'::public.holder as h, name from orders;
      create table public.tried (what text, state text);
      create table public.later (a int);
      create function public.witness() returns boolean language sql as
        'insert into public.ran default values; select true';
      create or replace function public.evil_t() returns trigger language plpgsql as
        $$ begin perform public.witness(); return new; end $$;
      create constraint trigger t after insert on public.later deferrable initially deferred
        for each row execute function public.evil_t();
      create or replace function public.evil(v text) returns boolean language plpgsql as $$
        declare one text;
        begin
          perform public.witness();
          foreach one in array array['reset role', 'set session authorization default', 'set role postgres',
            'set search_path = public', 'set lock_timeout = 0', 'create temp table format (a int)',
            'insert into public.later values (1)', 'set session_replication_role = replica',
            'declare c cursor with hold for select public.witness()', 'prepare p as select 1', 'listen basetide']
          loop
            begin
              execute one;
              insert into public.tried values (one, 'done');
            exception when others then insert into public.tried values (one, sqlstate);
            end;
          end loop;
          return true;
        end $$;
      delete from public.ran`);
    // As if the first barrier were not there.
    await sql.unsafe(
      `create or replace function public_swap.is_safe(p_class oid, p_object oid) returns boolean language sql as 'select true'`,
    );
    const before = await sql`select name, setting from pg_settings order by name`;
    await become({ Name: "date", New: "text" });
    expect(await ranAs(customer)).toEqual([made.role]);
    const tried = await customer<{ what: string; state: string }[]>`select what, state from public.tried`;
    const done = new Set(tried.filter(({ state }) => state === "done").map(({ what }) => what));
    // The settings are undone when the sandbox ends. The deferred trigger has run at once, with the customer's rights.
    expect([...done].sort()).toEqual([
      "insert into public.later values (1)",
      "set lock_timeout = 0",
      "set search_path = public",
    ]);
    const isOdd = (name: string) => name === "application_name";
    const after = await sql`select name, setting from pg_settings order by name`;
    expect(after.filter(({ name }) => !isOdd(name))).toEqual(before.filter(({ name }) => !isOdd(name)));
    expect(await sql`select relname from pg_class where relname = 'format'`).toEqual([]);
    expect(await customer`select h is not null as there from innocent`).toEqual([{ there: true }]);
  });
});

test("a view of theirs does not block the table under it: the old column is set aside, and the issue says so", async () => {
  const { test: made, sql, customer, become } = await openShop({ Name: "text" }, "plain admin");
  const other = `bt_other_${crypto.randomUUID().slice(0, 8)}`;
  await using admin = readerOf(superuserUrl(made.ownerUrl));
  await admin.unsafe(`create role ${other} login; grant create on schema public to ${other};
    grant select on orders to ${other}; set role ${other};
    create view public.theirs as select name from public.orders; reset role`);
  onTestFinished(async () => {
    await using last = readerOf(superuserUrl(made.ownerUrl));
    await last.unsafe(`drop owned by ${other}; drop role ${other}`);
  });
  await customer`create view public.mine as select name from orders`;
  await become({ Name: "date", New: "text" });
  await become({ Name: "date", Newer: "text" });
  expect(await customer`select newer from orders`).toEqual([{ newer: "five" }]);
  expect(await customer`select name::text from mine`).toEqual([{ name: "2024-05-01" }]);
  const issues = () =>
    sql`select table_name as name, reason from public._sync_issues where record_id = ''`.then((rows) => [
      ...rows,
    ]);
  expect(await issues()).toEqual([
    { name: "public.theirs", reason: expect.stringContaining(`grant ${other} to `) },
  ]);
  expect(await admin`select name from public.theirs`).toEqual([{ name: "five" }]);
  await admin.unsafe(`set role ${other}; drop view public.theirs; reset role`);
  await become({ Name: "date" });
  expect(await issues()).toEqual([]);
  expect(await dumpTable(sql, "orders")).toHaveLength(1);
});
