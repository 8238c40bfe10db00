/**
 * A SQL user that could create functions is revoked: what it made goes on acting for it, when the application or another
 * user meets it.
 */
import type postgres from "postgres";
import { type Attack, Tally } from "../attack";
import { openLanguages, sqlUser } from "./sql-user-up";

/** What it leaves behind; `loot` shows whose statement ran its code. */
const LEFT: Record<string, string> = {
  definer: `create function {name}() returns int language plpgsql security definer as $$ begin
      return public.act('{name}'); end $$; grant execute on function {name}() to public`,
  invoker: "create function {name}() returns int language sql as $$ select public.act('{name}') $$",
  view: "create view {name} as select public.act('{name}') as id; grant all on {name} to public",
  trigger: `create table {name} (id int); grant all on {name} to public;
    create function {name}_t() returns trigger language plpgsql security definer as $$ begin
      perform public.act('{name}'); return new; end $$;
    create trigger t before insert on {name} for each row execute function {name}_t()`,
  rule: `create table {name} (id int); grant all on {name} to public;
    create rule r as on insert to {name} do also select public.act('{name}')`,
  rule_on_data: `create table {name} (id int); grant all on {name} to public;
    create rule r as on insert to {name} do also delete from app_orders`,
  column_default: "create table {name} (id int default public.act('{name}')); grant all on {name} to public",
  index: `create function {name}_f(i int) returns int language plpgsql immutable as $$ begin
      return (select public.act('{name}')); end $$;
    create table {name} (id int); grant all on {name} to public; create index on {name} ({name}_f(id))`,
  overload: `create function upper(v varchar) returns text language plpgsql as $$ begin
      perform public.act('{name}'); return v; end $$`,
  operator: `create function {name}_o(a int, b text) returns text language plpgsql as $$ begin
      perform public.act('{name}'); return b; end $$;
    create operator public.|| (leftarg = int, rightarg = text, function = {name}_o)`,
  private_view: "create view {name} as select * from app_orders; grant all on {name} to public",
};

const USES = [
  "select {name}()",
  "select * from {name}",
  "insert into {name} values (1)",
  "insert into {name} values (default)",
  "select upper('a'::varchar)",
  "select 1 || 'a'::text",
];

export const revokedSqlUser: Attack = {
  name: "revoked-sql-user",
  finding: "S23",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    for (let round = 0; round < rounds; round++) {
      const source = await service.sourceBase("Writable for a while");
      const key = await service.key({ [source.id]: "create" });
      const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
      const { database } = await mallory.base(base.id);
      await service.operator("database", "set-writable", database.id, "on", "--json");
      const [alice, bob] = [await sqlUser(base, "alice"), await sqlUser(base, "bob")];
      try {
        await openLanguages(service, base, alice);
        await base.sql
          .unsafe(
            "create table app_orders (id int); insert into app_orders values (1); create table loot (what text); grant all on loot to public",
          )
          .simple();
        await alice.sql
          .unsafe(`create function act(what text) returns int language plpgsql as $$ begin
              insert into public.loot values (what || ' as ' || current_user); return 1; end $$`)
          .simple();
        const names: [string, string][] = Object.keys(LEFT).map((kind) => [
          kind,
          `${kind}_${random.int(1, 1e6)}`,
        ]);
        for (const [kind, name] of names)
          await alice.sql.unsafe(LEFT[kind]!.replaceAll("{name}", name)).simple();
        await mallory.ask("DELETE", `bases/${base.id}/sql-users/${alice.id}`);
        tally.add((await works(alice.sql, "select 1")) && "its session goes on");
        const app = service.pool(base.url);
        await app`delete from loot`;
        for (const [kind, name] of names) {
          for (const sql of [app, bob.sql]) {
            for (const use of USES) await works(sql, use.replaceAll("{name}", name));
          }
          const loot = await app<{ what: string }[]>`select distinct what from loot`;
          const [data] = await app<{ rows: number }[]>`select count(*)::int as rows from app_orders`;
          const isHarmed = loot.length > 0 || data!.rows !== 1;
          tally.add(
            isHarmed && `${kind}: ${loot.map(({ what }) => what).join(", ")}, ${data!.rows} rows left`,
          );
        }
        const secret = names.find(([kind]) => kind === "private_view")![1];
        tally.add((await works(bob.sql, `select * from ${secret}`)) && "its view still reads for others");
        const [code] = await service.asSuperuser(
          base,
          (sql) => sql<{ count: number }[]>`
            select count(*)::int as count from pg_proc where prosrc ~ 'public[.]act'`,
        );
        tally.add(code!.count > 0 && `${code!.count} functions still have its code`);
        const [owned] = await service.asSuperuser(
          base,
          (sql) => sql<{ count: number }[]>`
            select count(*)::int as count from pg_class as c join pg_roles as r on r.oid = c.relowner
            where c.relname = any (string_to_array(${names.map(([, name]) => name).join(",")}, ',')) and r.rolcanlogin`,
        );
        tally.add(owned!.count > 0 && `${owned!.count} of its tables and views belong to a login`);
      } finally {
        await Promise.all([alice, bob].map(({ sql }) => sql.end({ timeout: 1 })));
        await service.disconnect(base);
      }
    }
    return tally;
  },
};

const works = (sql: postgres.Sql, text: string) =>
  sql.unsafe(text).then(
    () => true,
    () => false,
  );
