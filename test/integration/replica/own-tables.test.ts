/** S3, S21. A name in a schema where other roles may create objects does not prove who owns the object. */
import postgres from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  applyLinkViews,
  applyRowImages,
  applySettings,
  installReplica,
  linkingIds,
  loadCatalog,
  markSyncStarted,
  rowIds,
  trimHistory,
} from "../../../core/replica";
import { readersOf } from "../../../core/replica/database-roles";
import { asAdmin, superuserUrl } from "../../support/admin";
import { freshDatabase } from "../../support/database";
import { readerOf } from "../../support/replica";
import { openShop, type ServiceRole } from "../../support/shop";

/** Each attack gets this long. */
const RACE_MS = 3000;
const MOST_ATTACKS = 20;

const EVIL_TRIGGER = `
  create table public.ran (who text default current_user);
  grant insert on public.ran to public;
  create function public.evil_t() returns trigger language plpgsql as
    $$ begin insert into public.ran default values; return new; end $$;`;

describe.each<ServiceRole>(["superuser", "plain admin"])("the service is a %s", (service) => {
  test("no race for the name _sync_history makes us write into the customer's table", {
    timeout: 180_000,
  }, async () => {
    const { test: made, sql, customer, live } = await openShop({ Name: "text" }, service);
    const { replica, epoch } = made;
    await customer.unsafe(`${EVIL_TRIGGER}
      create table public.parked (id bigint generated always as identity, seen_at timestamptz, table_name text,
        record_id text, operation text, old jsonb, new jsonb, by text);
      create trigger t before insert on public.parked for each row execute function public.evil_t();
      grant all on public.parked to public;
      create table public.swaps as select 0 as n`);
    await using attacker = readerOf(made.readerUrl);
    await attacker`set statement_timeout = 0`;
    let [kept, round] = [0, 0];
    const race = async () => {
      let isOver = false;
      const attack = attacker
        .unsafe(`do $$
          declare deadline timestamptz := clock_timestamp() + interval '${RACE_MS} ms';
          begin
            while clock_timestamp() < deadline loop
              begin
                execute 'alter table public.parked rename to _sync_history';
              exception when others then commit; continue;
              end;
              commit;
              execute 'alter table public._sync_history rename to parked';
              update public.swaps set n = n + 1;
              commit;
            end loop;
          end $$`)
        .finally(() => {
          isOver = true;
        });
      while (!isOver) {
        round += 1;
        if (await applySettings(replica, epoch, { history: true, notify: false })) kept++;
        const row = { id: `rec${round}`, created_time: "2024-05-01T12:34:56", name: "a" };
        const readVersion = Number.MAX_SAFE_INTEGER;
        await applyRowImages(replica, await live(), {
          epoch,
          readVersion,
          rows: [row],
          gone: [],
          issues: [],
        });
        await applySettings(replica, epoch, { history: false, notify: false });
        await sql`update public._sync_history set seen_at = 'epoch'`.catch(() => {});
        await trimHistory(replica, epoch, 1);
      }
      await attack;
    };
    const hadTurns = async () => {
      const [swaps] = await customer<{ n: number }[]>`select n from swaps`;
      return swaps!.n > 20 && kept > 5;
    };
    // Until both sides have won a race: on a busy machine that takes more than one attack.
    for (let attacks = 0; attacks < MOST_ATTACKS && !(await hadTurns()); attacks++) await race();
    expect(await customer`select * from ran`).toEqual([]);
    expect(await hadTurns()).toBe(true);
  });

  test("a name that the customer uses keeps no history, and reports it until it is free", async () => {
    const { test: made, sql, customer } = await openShop({ Name: "text" }, service);
    const { replica, epoch } = made;
    const follow = () => applySettings(replica, epoch, { history: true, notify: false });
    for (const [taken, free] of [
      ["create table public._sync_history (mine text)", "drop table public._sync_history"],
      ["create view public._sync_history as select 1 as mine", "drop view public._sync_history"],
      ["create type public._sync_history as (mine text)", "drop type public._sync_history"],
      ["create sequence public._sync_history_id_seq", "drop sequence public._sync_history_id_seq"],
      ["create table public._sync_history_by_time ()", "drop table public._sync_history_by_time"],
    ] as const) {
      await customer.unsafe(taken);
      expect([taken, await follow()]).toEqual([taken, false]);
      await customer.unsafe(free);
    }
    expect(await sql`select table_name from public._sync_issues`).toEqual([{ table_name: "_sync_history" }]);
    expect(await follow()).toBe(true);
    expect(await sql`select from public._sync_issues`).toHaveLength(0);
    expect(await customer`select * from _sync_history`).toEqual([]);
  });
});

/** A customer's own server: `owner` has the schema, and `app` is the service's role. */
async function ownServer() {
  const database = await freshDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const [owner, app] = ["owner", "app"].map((name) => `bt_${name}_${crypto.randomUUID().slice(0, 8)}`) as [
    string,
    string,
  ];
  const sql = postgres(superuserUrl(database.url), { max: 1, onnotice: () => {} });
  await sql.unsafe(`create role ${owner} login password 'x'; create role ${app} login password 'x' superuser;
    grant ${owner} to current_user; create schema copy authorization ${owner}; grant create on schema copy to ${app}`);
  onTestFinished(async () => {
    await sql.end();
    await database[Symbol.asyncDispose]();
    await asAdmin((admin) => admin.unsafe(`drop role ${app}; drop role ${owner}`));
  });
  const urlOf = (name: string) =>
    Object.assign(new URL(database.url), { username: name, password: "x" }).href;
  return { sql, owner, app, ownerUrl: urlOf(owner), appUrl: urlOf(app) };
}

test("S21: a foreign object under one of our names is an error that names it and the remedy", async () => {
  const { sql, owner, app, appUrl } = await ownServer();
  const install = () => installReplica(appUrl, { schema: "copy", role: app });
  for (const [taken, free, words] of [
    [
      "create table copy._sync_meta (mine text)",
      "drop table copy._sync_meta",
      "copy._sync_meta belongs to the role",
    ],
    [
      "create view copy._sync_issues as select 1",
      "drop view copy._sync_issues",
      "copy._sync_issues belongs to",
    ],
    [
      "create view copy.__sync_meta__ as select 1",
      "drop view copy.__sync_meta__",
      "copy.__sync_meta__ belongs to",
    ],
    [
      "create type copy._sync_meta as (mine text)",
      "drop type copy._sync_meta",
      "copy._sync_meta belongs to the role",
    ],
    [
      "create domain copy._sync_issues as text",
      "drop domain copy._sync_issues",
      "cannot create copy._sync_issues",
    ],
    ["create table copy._sync_meta_one_row ()", "drop table copy._sync_meta_one_row", "_sync_meta_one_row"],
    [
      `create schema copy_swap authorization ${owner}`,
      "drop schema copy_swap",
      "The schema copy_swap belongs to the role",
    ],
  ] as const) {
    await sql.unsafe(`set role ${taken.includes("authorization") ? "none" : owner}; ${taken}; reset role`);
    await expect(install(), taken).rejects.toMatchObject({
      code: "destination_invalid",
      message: expect.stringMatching(/(drop or rename|rename or drop) it$/),
    });
    await expect(install(), taken).rejects.toThrow(words);
    expect(await sql`select from pg_namespace where nspname = 'copy_swap'`).toHaveLength(
      words.includes("schema") ? 1 : 0,
    );
    await sql.unsafe(free);
  }
  // One of the same role that the service uses, with other columns.
  await sql.unsafe(`create table copy._sync_meta (mine text); alter table copy._sync_meta owner to ${app}`);
  await expect(install()).rejects.toThrow("copy._sync_meta was not created by Basetide");
  await sql`drop table copy._sync_meta`;
  await install();
  // A function's name conflicts with nothing.
  await sql`create function copy._sync_history() returns int language sql as 'select 1'`;
  await install();
});

test("an object that existed in our schema before we created it is not taken for ours", async () => {
  const { sql, owner, app, appUrl } = await ownServer();
  await sql.unsafe(`create schema copy_swap authorization ${app}; grant create on schema copy_swap to ${owner};
    set role ${owner}; create function copy_swap.claim() returns bigint language sql as 'select 1::bigint'; reset role`);
  await expect(installReplica(appUrl, { schema: "copy", role: app })).rejects.toMatchObject({
    code: "destination_invalid",
    message: expect.stringContaining("The function copy_swap.claim() belongs to the role"),
  });
});

test("a table with which the schema's owner has replaced ours is neither written to nor read", async () => {
  const { sql, test: made, live, customer } = await openShop({ Name: "text" });
  const { replica, epoch } = made;
  const table = await live();
  await sql.unsafe(`alter schema public owner to ${made.role}`);
  await customer.unsafe(`${EVIL_TRIGGER}
    drop table public.orders;
    create table public.orders (id text primary key, created_time timestamp, name text);
    create trigger t before insert on public.orders for each row execute function public.evil_t()`);
  const row = { id: "rec9", created_time: "2024-05-01T12:34:56", name: "a" };
  const images = { epoch, readVersion: Number.MAX_SAFE_INTEGER, rows: [row], gone: [], issues: [] };
  const refusal = {
    code: "destination_invalid",
    message: expect.stringContaining(`orders belongs to the role ${made.role}`),
  };
  await expect(applyRowImages(replica, table, images)).rejects.toMatchObject(refusal);
  const taken = (await loadCatalog(replica)).get(table.spec.tableId)!;
  expect(taken.taken).toEqual(expect.stringContaining(`orders belongs to the role ${made.role}`));
  await expect(rowIds(replica, taken).next()).rejects.toMatchObject(refusal);
  await expect(linkingIds(replica, taken, "fld0", ["rec1"])).rejects.toMatchObject(refusal);
  // An object that is bound to our table is dropped with it, or blocks it.
  await expect(customer`drop table public._sync_meta`).rejects.toMatchObject({ code: "2BP01" });
  await customer.unsafe(`drop table public._sync_meta cascade;
    create table public._sync_meta (started_at timestamptz, completed_at timestamptz, duration_last interval);
    create trigger t before update on public._sync_meta for each statement execute function public.evil_t()`);
  await expect(markSyncStarted(replica, epoch)).rejects.toMatchObject({ code: "internal" });
  expect(await customer`select * from ran`).toEqual([]);
  await customer`drop table public.orders, public._sync_meta`;
  await installReplica(made.ownerUrl, { schema: "public", role: made.role });
  await markSyncStarted(replica, epoch);
});

test("default privileges give other roles nothing on our tables except reading", async () => {
  const { sql, test: made, become } = await openShop({ Name: "text" });
  await sql.unsafe(`alter default privileges grant all on tables to ${made.role};
    alter default privileges in schema public grant all on tables to ${made.role}`);
  onTestFinished(async () => {
    await using owner = readerOf(made.ownerUrl);
    await owner.unsafe(`alter default privileges revoke all on tables from ${made.role};
      alter default privileges in schema public revoke all on tables from ${made.role}`);
  });
  await become({ Name: "text", Links: "links" });
  await applySettings(made.replica, made.epoch, { history: true, notify: false });
  await applyLinkViews(made.replica, made.epoch, true);
  const granted = await sql<{ name: string; privileges: string[] }[]>`
    select c.relname as name, array_agg(distinct a.privilege_type) as privileges
    from pg_class as c, aclexplode(c.relacl) as a
    where c.relnamespace = 'public'::regnamespace and a.grantee <> c.relowner group by 1 order by 1`;
  expect(granted.map(({ name }) => name)).toContain("orders__links");
  for (const { name, privileges } of granted) expect([name, privileges]).toEqual([name, ["SELECT"]]);
});

/** The roles with rights to our tables and views, besides the service and the reader. */
const othersRights = (sql: postgres.Sql, reader: string) => sql`
  select c.relname as name, pg_get_userbyid(a.grantee) as role, a.privilege_type as privilege
  from pg_class as c, aclexplode(c.relacl) as a
  where c.relnamespace = 'public'::regnamespace and a.grantee not in (c.relowner, to_regrole(${reader})) order by 1, 2, 3`;

describe.each<ServiceRole>(["superuser", "plain admin"])("the service is a %s", (service) => {
  test("our own tables and views are readable by the reader only, whatever the default privileges are", async () => {
    const { sql, test: made, customer, become, drop } = await openShop({ Name: "text" }, service);
    const anon = `bt_anon_${crypto.randomUUID().slice(0, 8)}`;
    await asAdmin(async (admin) => void (await admin.unsafe(`create role ${anon}`)));
    onTestFinished(() => asAdmin(async (admin) => void (await admin.unsafe(`drop role ${anon}`))));
    const give = (object: string) => `
      alter default privileges grant all on ${object} to ${anon}, public;
      alter default privileges in schema public grant all on ${object} to ${anon}, public;`;
    const take = (object: string) =>
      give(object).replaceAll("grant all", "revoke all").replaceAll(" to ", " from ");
    const objects = ["tables", "sequences", "functions"];
    await sql.unsafe(objects.map(give).join(""));
    onTestFinished(async () => {
      await using owner = readerOf(made.ownerUrl);
      await owner.unsafe(objects.map(take).join(""));
      await asAdmin(
        async (admin) => void (await admin.unsafe(`drop owned by ${anon}`)),
        superuserUrl(made.ownerUrl),
      );
    });
    const install = () => installReplica(made.ownerUrl, { schema: "other", role: made.role });
    await install();
    await applySettings(made.replica, made.epoch, { history: true, notify: false });
    await applyLinkViews(made.replica, made.epoch, true);
    await drop();
    await become({ Name: "text", Links: "links" });
    const shown = await othersRights(sql, readersOf(made.role));
    // A base's own tables can be read by the roles in the customer's default privileges of that schema.
    expect(new Set(shown.map(({ name, privilege }) => `${name} ${privilege}`))).toEqual(
      new Set(["orders SELECT"]),
    );
    const [reads] = await sql`
      select has_table_privilege(${made.role}, 'public._sync_history', 'select') as history,
        has_table_privilege(${made.role}, 'public.orders__links', 'select') as links,
        has_table_privilege(${made.role}, 'other._sync_meta', 'select') as meta,
        has_table_privilege(${anon}, 'other._sync_issues', 'select') as others,
        has_sequence_privilege(${anon}, 'public._sync_history_id_seq', 'usage, select, update') as counts`;
    expect(reads).toEqual({ history: true, links: true, meta: true, others: false, counts: false });

    // A customer's table is no obstacle, and we grant nothing on it.
    await customer`create table public.mine (id int)`;
    const upgrade = () => installReplica(made.ownerUrl, { schema: "public", role: made.role });
    await upgrade();
    const names = async () => (await othersRights(sql, readersOf(made.role))).map(({ name }) => name);
    expect((await names()).filter((name) => /^_sync|__/.test(name))).toEqual([]);
    await sql.unsafe(`grant select on public._sync_meta to ${anon}`);
    await upgrade();
    expect((await names()).filter((name) => /^_sync|__/.test(name))).toEqual(["_sync_meta"]);
    await sql.unsafe(`revoke all on public._sync_meta from ${anon}`);
  });
});

test("every function of a replica has a pinned search path, and belongs to the service", async () => {
  const { sql } = await openShop({ Name: "text" });
  const functions = await sql<{ name: string; config: string[]; is_ours: boolean; is_definer: boolean }[]>`
    select p.proname as name, p.proconfig as config, p.proowner = to_regrole(quote_ident(current_user)) as is_ours,
      p.prosecdef as is_definer
    from pg_proc as p where p.pronamespace in ('public'::regnamespace, 'public_swap'::regnamespace)`;
  expect(functions.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^apply_row_images_/));
  expect(functions.length).toBeGreaterThan(50);
  for (const { name, config, is_ours, is_definer } of functions) {
    // A setting that only affects the speed of a function, or how long it waits, may come with it.
    const pins = config.filter(
      (one) => !/^(plan_cache_mode|enable_seqscan|check_function_bodies|lock_timeout)=/.test(one),
    );
    expect([name, pins, is_ours, is_definer]).toEqual([
      name,
      ["search_path=pg_catalog, pg_temp"],
      true,
      false,
    ]);
  }
});
