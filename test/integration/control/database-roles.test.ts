/** The roles of hosted databases: who may act as whom, and what becomes of what a revoked SQL user made. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createBase, readerTarget } from "../../../core/control/bases";
import {
  checkReplicas,
  createSqlUser,
  type Database,
  databaseCredentials,
  getDatabase,
  readerPool,
  replicaDatabases,
  rotateCredentials,
  type SqlUser,
  setDatabaseWritable,
} from "../../../core/control/placement";
import { sqlUserCredentials } from "../../../core/control/placement/sql-users";
import {
  createSqlUserRole,
  databaseUrl,
  dropDatabase,
  dropSqlUserRole,
  installReplica,
  prepareCluster,
  provisionDatabase,
  setWritable,
} from "../../../core/replica";
import { consoleRoleOf, readersOf } from "../../../core/replica/database-roles";
import { ensureConsoleRole } from "../../../core/replica/sql-users";
import { runQuery } from "../../../core/sql-editor";
import { asAdmin } from "../../support/admin";
import { canLogIn } from "../../support/can-log-in";
import { connectAs, GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";
import { postgresServer } from "../../support/servers/postgres-server";
import { POSTGRES_VERSIONS } from "../../support/servers/postgres-versions";

const ACTOR = { kind: "user", name: "ada@example.org" } as const;
const LIMITS = { timeoutMs: 10_000, bytes: 1_000_000, rows: 100 };

let replicas: ReplicaServer;
let control: TestControl;
let as: TestControl["ctx"] & { actor: typeof ACTOR };
let accountId: string;

beforeAll(async () => {
  replicas = await replicaServer();
  control = await testControl(replicas.clusterUrl);
  as = { ...control.ctx, actor: ACTOR };
  accountId = (await control.addAccount("ada@example.org")).id;
}, 120_000);
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

let connected = 0;
async function scene({ isWritable = true } = {}) {
  connected += 1;
  const names = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: SOURCES[connected - 1]! };
  const base = await createBase(control.ctx, accountId, names);
  let database = await getDatabase(as.db, base.database.id);
  if (isWritable) database = await setDatabaseWritable(as, database, true);
  const { url } = await databaseCredentials(as, database);
  return { base, database, url, superuser: databaseUrl(replicas.superuserUrl, database.name) };
}
const SOURCES = ["appOne", "appTwo"];

async function made(database: Database, name: string): Promise<{ user: SqlUser; url: string }> {
  const user = await createSqlUser(as, database, name);
  return { user, url: (await sqlUserCredentials(as, database, user)).url };
}

const outcome = (work: PromiseLike<unknown>) =>
  Promise.resolve(work).then(
    () => "done",
    (error: { code?: string }) => error.code ?? String(error),
  );

/** Memberships of roles that can log in, other than the admin's, in roles that can log in. */
const loginMembers = (url: string) =>
  asAdmin(
    (sql) => sql`
      select u.rolname as member, r.rolname as role from pg_auth_members as m
        join pg_roles as r on r.oid = m.roleid join pg_roles as u on u.oid = m.member
      where r.rolcanlogin and u.rolcanlogin and not u.rolcreaterole and r.rolname ~ '^bt_'`,
    url,
  );

/** Ways in which a role that may create objects gets code of its own to run as another one. */
const WAYS_UP: Record<string, string> = {
  "set role": "set role {own}",
  "its password": "alter role {own} password 'mine'",
  "its default privileges": "alter default privileges for role {own} grant all on tables to public",
  "an expression index on its table": "create index on app_orders (abs(id))",
  "a trigger on its table":
    "create trigger t before insert on app_orders for each row execute function suppress_redundant_updates_trigger()",
  "a rule on its table": "create rule r as on insert to app_orders do also delete from app_orders",
  "a default of its column": "alter table app_orders alter column id set default 1",
  "a generated column": "alter table app_orders add column twice int generated always as (id * 2) stored",
  "a check on its table": "alter table app_orders add check (id > 0)",
  "a policy on its table": "create policy p on app_orders",
  "statistics on its table": "create statistics s on (id + 1), (id + 2) from app_orders",
  "its table": "insert into app_orders values (2)",
  "its view": "create or replace view app_view as select 2 as id",
  "its function": "create or replace function app_one() returns int language sql as 'select 2'",
  "a function in SQL": "create function f(int) returns int language sql as 'select 1'",
  "a function in PL/pgSQL": "create function f(int) returns int language plpgsql as 'begin return 1; end'",
  "a function with an atomic body": "create function f(int) returns int begin atomic select 1; end",
  "a procedure": "create procedure f() language sql as 'select 1'",
  "a block": "do $$ begin end $$",
  "an event trigger": "create event trigger e on ddl_command_end execute function app_one()",
  "a cast of built-in types": "create cast (int as bytea) with function app_cast(int)",
  "an operator class": "create operator class c for type int using btree as operator 1 <",
  "another schema": "create schema elsewhere",
  "another user's session":
    "select 1 / count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity where usename = '{own}'",
};

test("I8: in a writable database a SQL user creates tables, and finds no way to act as the database's own role", async () => {
  const { database, url } = await scene();
  const own = connectAs(url);
  await using _ = own;
  await own.db.unsafe(`
    create table app_orders (id int); insert into app_orders values (1); create view app_view as select 1 as id;
    create function app_one() returns int language sql as 'select 1';
    create function app_cast(int) returns bytea language plpgsql as 'begin return null; end'`);
  const alice = await made(database, "alice");
  await using session = connectAs(alice.url);
  expect(await session.db`select id from app_orders`).toEqual([{ id: 1 }]);
  await session.db.unsafe("create table loot (id int); create view seen as select id from app_orders");
  await session.db.unsafe("create index on loot (abs(id)); insert into loot values (1)");
  expect(await loginMembers(replicas.clusterUrl)).toEqual([]);

  const done: string[] = [];
  for (const [name, text] of Object.entries(WAYS_UP)) {
    const answer = await outcome(session.db.unsafe(text.replaceAll("{own}", database.role)));
    if (answer !== "42501") done.push(`${name}: ${answer}`);
  }
  expect(done).toEqual([]);
  // It can read what the database's own role makes, unless that role decides otherwise.
  await own.db.unsafe("create table app_secret (id int); revoke select on app_secret from public");
  const readers = readersOf(database.role);
  await own.db.unsafe(`revoke select on app_secret from ${readers}`);
  expect(await outcome(session.db`select from app_secret`)).toBe("42501");
  expect(await canLogIn(url)).toBe(true);
}, 120_000);

test("S25: SQL in the console runs with a role of its own, which sees, ends and reads no session of the application", async () => {
  const { base, database, url } = await scene({ isWritable: false });
  await using application = connectAs(url);
  await application.db`select 'a secret literal'`;
  const run = async (sql: string) => {
    const { results, failure } = await runQuery(await readerTarget(as, base), sql, LIMITS);
    return failure?.sqlState ?? results[0]?.rows;
  };
  const role = consoleRoleOf(database.role);
  expect(await run("select current_user, count(*) from _sync_meta")).toEqual([[role, "1"]]);
  const hidden = `select query from pg_stat_activity where usename = '${database.role}' and query !~ 'privilege'`;
  expect(await run(hidden)).toEqual([]);
  for (const ends of ["pg_terminate_backend", "pg_cancel_backend"]) {
    const state = await run(`select ${ends}(pid) from pg_stat_activity where usename = '${database.role}'`);
    expect([ends, state]).toEqual([ends, "42501"]);
  }
  expect(await run("create table mine (id int)")).toBe("25006");
  expect(await run("alter role current_user password 'mine'")).toBe("25006");
  const pool = await readerPool(as, database);
  const [browsing] = await pool<{ role: string; mode: string }[]>`
    select current_user::text as role, current_setting('default_transaction_read_only') as mode`;
  expect(browsing).toEqual({ role, mode: "on" });
  expect(await application.db`select 1 as one`).toEqual([{ one: 1 }]);
  expect(await findings(database)).toEqual([]);

  // Its role is restored like the others, and a new password of the database makes one for it.
  await asAdmin(
    (sql) => sql.unsafe(`alter role ${role} password 'mine' connection limit 9`),
    replicas.clusterUrl,
  );
  expect((await findings(database)).map(({ message }) => message)).toEqual([
    `${database.name}: its role for the console lacks the rights or the limits of a SQL user`,
  ]);
  for (const { fix } of await findings(database)) await fix!();
  expect(await run("select current_user")).toEqual([[role]]);
  await asAdmin((sql) => sql.unsafe(`alter role ${role} password 'mine'`), replicas.clusterUrl);
  await rotateCredentials(as, database);
  expect(await run("select current_user")).toEqual([[role]]);
}, 120_000);

async function findings({ id }: Database) {
  return checkReplicas(as, (await replicaDatabases(as)).find((one) => one.id === id)!);
}

/** What a SQL user can do with the rights of the database's own role, on a server with open languages. */
const HOOKS = `
  create table loot (who text); grant all on loot to public;
  create function g(i int) returns int language plpgsql volatile as $$ begin
    insert into public.loot values (current_user); return i; end $$;
  create function f(i int) returns int language plpgsql immutable as $$ begin return (select public.g(i)); end $$;
  create function on_row() returns trigger language plpgsql security definer as $$ begin
    perform public.g(1); return new; end $$;
  create function lower(v varchar) returns text language plpgsql as $$ begin perform public.g(1); return v; end $$;
  create procedure p(i int default 1) language plpgsql as $$ begin perform public.g(i); end $$;
  create function pairs(out a int, out b int) returns setof record language sql as 'select public.g(1), 2';
  create function texted(v int) returns text language sql as 'select public.g(v)::text';
  create operator public.|| (leftarg = int, rightarg = int, function = paste);
  create aggregate public.total(int) (sfunc = paste, stype = int);
  create type mood as enum ('sad');
  create domain small as int check (public.f(value) > 0);
  create cast (mood as int) with function mood_int(mood) as implicit;
  create table private (id int default public.g(1));
  create view through as select public.g(1) as one;
  create index on app_orders (f(id));
  create index on app_orders (id) where f(id) > 0;
  create trigger t before insert on app_orders for each row execute function on_row();
  create rule r as on update to app_orders do also select public.g(1);
  create statistics s on (f(id)), (id + 1) from app_orders;
  alter table app_orders alter column note set default public.texted(1);
  alter table app_orders add constraint checked check (f(id) > 0);
  alter table app_orders add constraint apart exclude using btree (f(id) with =);
  alter table app_orders add column twice int generated always as (f(id)) stored;`
  .replace(
    "  create operator",
    `  create function paste(a int, b int) returns int language sql as 'select public.g(a)';
  create operator`,
  )
  .replace(
    "  create cast",
    "  create function mood_int(mood) returns int language sql as 'select public.g(1)';\n  create cast",
  );

/** Statements of the application, each of which would run the user's code. */
const USES = [
  "insert into app_orders (id) values (2)",
  "update app_orders set id = 3",
  "analyze app_orders",
  "reindex table app_orders",
  "select lower('A'::varchar)",
  "vacuum app_orders",
  "select 1::small",
];
/** The same, where what is used is the user's own: refused. */
const REFUSED_USES = [
  "call p()",
  "select g(1)",
  "select * from through",
  "select 1::int || 2::int",
  "select total(id) from app_orders",
  "insert into private values (default)",
];

for (const version of POSTGRES_VERSIONS.filter((one) => Number.parseInt(one, 10) >= 16)) {
  test(`what a revoked SQL user made no longer runs, and belongs to a role without a login or rights: Postgres ${version}`, async () => {
    await using server = await postgresServer({ version });
    const admin = await server.role("cluster_admin", "createdb createrole");
    await prepareCluster(server.url, { role: "cluster_admin", password: "pw", database: "postgres" });
    const home = await provisionDatabase(admin);
    const url = databaseUrl(admin, home.database);
    await installReplica(url, { schema: "public", role: home.role, isNew: true });
    const writable = { ...home, isWritable: true };

    await setWritable(url, home.role, "public", true);
    const user = { role: "bt_00000000000000aa", password: "alice" };
    await createSqlUserRole(admin, writable, user);
    const loginUrl = (login: { role: string; password: string }) => {
      const as = new URL(url);
      as.username = login.role;
      as.password = login.password;
      return as.href;
    };
    await using own = connectAs(loginUrl(home));
    await own.db`set client_min_messages = error`;
    await own.db.unsafe("create table app_orders (id int, note text); insert into app_orders values (1)");
    await asAdmin(
      (sql) =>
        sql.unsafe(`
          grant ${home.role} to ${user.role} with inherit true, set false;
          grant usage on language plpgsql, sql to ${user.role}`),
      url,
    );
    {
      await using alice = connectAs(loginUrl(user));
      await alice.db.unsafe(HOOKS);
      await alice.db`truncate loot`;
      await alice.db`insert into loot values ('data')`;
      await alice.db`alter default privileges grant all on tables to public`;
    }
    const left = await dropSqlUserRole(admin, home, user.role);
    const words = (texts: string[]) => texts.map((text) => text.split(" ")[0]).sort();
    const kinds = "constraint constraint default default default index index index rule statistics trigger";
    expect(words(left.dropped).join(" ")).toBe(kinds);
    expect(left.kept).toContain("table public.loot");

    for (const statement of USES) {
      expect([statement, await outcome(own.db.unsafe(statement))]).toEqual([statement, "done"]);
    }
    for (const statement of REFUSED_USES) {
      expect([statement, await outcome(own.db.unsafe(statement))]).not.toEqual([statement, "done"]);
    }
    expect(await own.db`select who from loot`).toEqual([{ who: "data" }]);
    expect(await own.db`select id, twice from app_orders order by twice`).toEqual([
      { id: 3, twice: 1 },
      { id: 3, twice: null },
    ]);
    await using all = connectAs(databaseUrl(server.url, home.database));
    const owners = await all.db`
      select distinct r.rolcanlogin, r.rolname = 'bt_00000000000000aa_revoked' as is_heir
      from pg_shdepend as d join pg_roles as r on r.oid = d.refobjid
      where d.deptype = 'o' and r.rolname ~ '^bt_' and r.rolname <> ${home.role}`;
    expect(owners).toEqual([{ rolcanlogin: false, is_heir: true }]);
    // dblink has two, which no role may call but the one that SQL writes are made with.
    expect(
      await all.db`select oid::regprocedure from pg_proc where prosecdef and pronamespace > 16000
        and pronamespace is distinct from to_regnamespace('basetide_dblink')`,
    ).toEqual([]);
    const heir = "bt_00000000000000aa_revoked";
    const [rights] = await all.db`
      select has_table_privilege(${heir}, 'app_orders', 'select') as reads,
        has_schema_privilege(${heir}, 'public', 'create') as creates,
        (select count(*)::int from pg_auth_members where member = ${heir}::regrole) as memberships`;
    expect(rights).toEqual({ reads: false, creates: false, memberships: 0 });
    // The database's own role can drop what is left.
    await own.db.unsafe(
      `set role ${heir}; drop table loot, private; drop schema ${heir} cascade; reset role`,
    );
    await all.db.end();
    await dropDatabase(admin, home.database, home.role);
    await using afterwards = connectAs(server.url);
    expect(await afterwards.db`select rolname from pg_roles where rolname ~ '^bt_'`).toEqual([]);
  }, 180_000);
}

for (const version of POSTGRES_VERSIONS) {
  test(`I8: no role of a database can end or cancel another one's session: Postgres ${version}`, async () => {
    await using server = await postgresServer({ version });
    const admin = await server.role("cluster_admin", "createdb createrole");
    await prepareCluster(server.url, { role: "cluster_admin", password: "pw", database: "postgres" });
    const home = await provisionDatabase(admin);
    const neighbor = await provisionDatabase(admin);
    const url = databaseUrl(admin, home.database);
    await installReplica(url, { schema: "public", role: home.role, isNew: true });
    const writable = { ...home, isWritable: true };
    await setWritable(url, home.role, "public", true);
    const logins = [home, { role: consoleRoleOf(home.role), password: "console" }];
    await ensureConsoleRole(admin, writable, "console");
    if (Number.parseInt(version, 10) >= 16) {
      const user = { role: "bt_00000000000000cc", password: "carol" };
      await createSqlUserRole(admin, writable, user);
      logins.push(user);
    }
    const loginTo = (database: string, { role, password }: { role: string; password: string }) => {
      const login = new URL(databaseUrl(admin, database));
      [login.username, login.password] = [role, password];
      return connectAs(login.href);
    };
    await using sessions = new AsyncDisposableStack();
    const all = [
      connectAs(url),
      connectAs(databaseUrl(server.url, home.database)),
      loginTo(neighbor.database, neighbor),
      ...logins.map((login) => loginTo(home.database, login)),
    ].map((session) => sessions.use(session));
    const pids: Record<string, number> = {};
    for (const { db } of all) {
      const [own] = await db<{ pid: number; role: string }[]>`
        select pg_backend_pid() as pid, session_user::text as role`;
      pids[own!.role] = own!.pid;
    }
    expect(Object.keys(pids)).toHaveLength(all.length);

    for (const [at, { role }] of logins.entries()) {
      const { db } = all[all.length - logins.length + at]!;
      for (const [other, pid] of Object.entries(pids)) {
        if (other === role) continue;
        for (const ends of ["pg_terminate_backend", "pg_cancel_backend"])
          expect([role, other, await outcome(db.unsafe(`select ${ends}(${pid})`))]).toEqual([
            role,
            other,
            "42501",
          ]);
      }
    }
    for (const { db } of all) {
      const [still] = await db<{ pid: number }[]>`select pg_backend_pid() as pid`;
      expect(Object.values(pids)).toContain(still!.pid);
    }
    // A role can end the sessions of those that it is a member of, however that came about.
    const memberships = await all[0]!.db<{ role: string }[]>`
      select distinct r.rolname::text as role from pg_roles as u join pg_roles as r on pg_has_role(u.oid, r.oid, 'member')
      where u.rolname ~ '^bt_' and r.oid <> u.oid order by 1`;
    expect(memberships.map(({ role }) => role)).toEqual(
      [home, neighbor].map(({ role }) => readersOf(role)).sort(),
    );
  }, 180_000);
}
