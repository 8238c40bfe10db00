/** A database's schema as readable DDL, from Postgres' own catalogs: what `sql/control/schema.sql` is made of. */
import type postgres from "postgres";

/** Tables of the schema `public` with columns, constraints, indexes and comments, types, and the functions' signatures. */
export async function schemaText(sql: postgres.Sql): Promise<string> {
  const tables = await sql<{ name: string; prefix: string; options: string | null; identity: string }[]>`
    select relname as name, case relpersistence when 'u' then 'unlogged ' else '' end as prefix,
      array_to_string(reloptions, ', ') as options, relreplident as identity
    from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'schema_migrations'
    order by relname`;
  const parts = await Promise.all(
    tables.map(async (table) => [
      create(table, await linesOf(sql, table.name)),
      ...(await afterwards(sql, table)),
    ]),
  );
  const types = await sql<{ line: string }[]>`
    select format(E'create type %I as (\n  %s\n);', c.relname, (
      select string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), E',\n  ' order by attnum)
      from pg_attribute where attrelid = c.oid)) as line
    from pg_class as c where relnamespace = 'public'::regnamespace and relkind = 'c' order by relname`;
  const functions = await sql<{ line: string }[]>`
    select format('-- %s returns %s', oid::regprocedure, pg_get_function_result(oid)) as line
    from pg_proc where pronamespace = 'public'::regnamespace order by 1`;
  const made = [...parts.map((lines) => lines.join("\n")), ...types.map(({ line }) => line)];
  return `${[...made, functions.map(({ line }) => line).join("\n")].join("\n\n")}\n`;
}

function create(table: { name: string; prefix: string; options: string | null }, lines: string[]): string {
  const options = table.options ? ` with (${table.options})` : "";
  return `create ${table.prefix}table ${table.name} (\n  ${lines.join(",\n  ")}\n)${options};`;
}

/** Columns in their order, then constraints by name. */
async function linesOf(sql: postgres.Sql, table: string): Promise<string[]> {
  const columns = await sql<{ line: string }[]>`
    select concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
      case when a.attidentity = 'a' then 'generated always as identity' when a.attnotnull then 'not null' end,
      'default ' || pg_get_expr(d.adbin, d.adrelid)) as line
    from pg_attribute as a left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = ${table}::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`;
  const constraints = await sql<{ line: string }[]>`
    select format('constraint %I %s', conname, pg_get_constraintdef(oid, true)) as line
    from pg_constraint where conrelid = ${table}::regclass and contype <> 'n' order by contype = 'f', conname`;
  return [...columns, ...constraints].map(({ line }) => line);
}

/** Indexes that are no constraint's, the replica identity, and comments. */
async function afterwards(sql: postgres.Sql, table: { name: string; identity: string }): Promise<string[]> {
  const lines = await sql<{ line: string }[]>`
    select replace(pg_get_indexdef(indexrelid), ' public.', ' ') || ';' as line
    from pg_index as i join pg_class as c on c.oid = i.indexrelid
    where i.indrelid = ${table.name}::regclass
      and not exists (select from pg_constraint where conindid = i.indexrelid and contype in ('p', 'u'))
    order by c.relname`;
  const comments = await sql<{ line: string }[]>`
    select format('comment on column %I.%I is %L;', ${table.name}::text, a.attname, d.description) as line
    from pg_description as d join pg_attribute as a on a.attrelid = d.objoid and a.attnum = d.objsubid
    where d.objoid = ${table.name}::regclass and d.classoid = 'pg_class'::regclass order by a.attnum`;
  const identity =
    table.identity === "f" ? [{ line: `alter table ${table.name} replica identity full;` }] : [];
  return [...lines, ...identity, ...comments].map(({ line }) => line.replace(" USING btree", ""));
}
