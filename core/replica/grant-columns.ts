/**
 * Makes a role read exactly what it may in a hosted database.
 *
 * I8. What it may not read is denied by the server, whatever the SQL is. The rights are compared with what the server has
 * granted, and not with what is remembered of that: a role, a table or a database may have been made again, or restored.
 */
import type { TransactionSql } from "postgres";
import { LruMap } from "../lru-map";
import { jsonParameter } from "../postgres";
import { onReplica, type ReplicaSql, replicaPool, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { overRaces } from "./provision";
import type { TableSpec } from "./spec";

interface ReadableRelation {
  name: string;
  /** Null: all of them. */
  columns: readonly string[] | null;
}

/** What a schema has now, by its catalog. */
export interface SchemaContents {
  tables: TableSpec[];
  linkViews: { name: string; fieldId: string }[];
}

/** What a role may read in a schema. */
interface SchemaReads {
  schema: string;
  choose(contents: SchemaContents): ReadableRelation[];
}

/**
 * By URL. A login for each statement of an agent would take longer than most of them. Idle connections close themselves,
 * and a pool without one costs nothing.
 */
const owners = new LruMap<string, ReplicaSql>(200);

/**
 * Grants `role` what it lacks, and revokes whatever else it may read of ours in any schema of the database: in one
 * transaction, so that no reader sees less in between. What does not exist at the moment is left out.
 *
 * Concurrent calls for a database grant one after the other, each by what `readsNow` returns after the one before has ended:
 * rights that are taken away before a call begins are not granted by it, or by one that ends after it.
 *
 * @param url the database, as its owner
 * @param readsNow what the role may read, as decided at that moment
 */
export async function grantColumns(
  url: string,
  role: string,
  readsNow: () => Promise<SchemaReads[]>,
): Promise<void> {
  const owner = ownerOf(url);
  await onReplica(() =>
    overRaces(async () => {
      if ((await differences(owner, role, await readsNow())).length === 0) return;
      await owner.begin(async (tx) => {
        await tx.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
        await tx`select pg_advisory_xact_lock(hashtextextended('basetide agents', 0))`;
        const statements = await settled(tx, role, await readsNow());
        await tx.unsafe(statements.join("\n"));
      });
    }),
  );
}

function ownerOf(url: string): ReplicaSql {
  const known = owners.get(url);
  if (known) return known;
  const { sql } = replicaPool(url, { use: "console" });
  owners.set(url, sql);
  return sql;
}

/** Locks what differs against changes of names, and returns the statements by which it no longer differs. */
async function settled(
  tx: TransactionSql<{ bigint: number }>,
  role: string,
  reads: SchemaReads[],
): Promise<string[]> {
  const locked = new Set<string>();
  for (;;) {
    const found = await differences(tx, role, reads);
    const others = found.filter(({ place, isSchema }) => !isSchema && !locked.has(place));
    if (others.length === 0) return found.map(({ statements }) => statements);
    await tx.unsafe(`lock table ${others.map(({ place }) => place).join(", ")} in access share mode`);
    for (const { place } of others) locked.add(place);
  }
}

interface Difference {
  /** A schema, or a relation with its schema: quoted. */
  place: string;
  isSchema: boolean;
  statements: string;
}

/** Compares what the role may read with what it is granted. */
async function differences(
  sql: ReplicaSql | TransactionSql<{ bigint: number }>,
  role: string,
  reads: SchemaReads[],
) {
  const contents = await readCatalogs(
    sql,
    reads.map(({ schema }) => schema),
  );
  const wanted = reads.flatMap(({ schema, choose }) => {
    const has = contents.get(schema);
    return has ? choose(has).map((relation) => ({ ...relation, schema })) : [];
  });
  return sql<Difference[]>`
    with own as (
      select c.oid, c.relnamespace, c.relname, format('%I.%I', n.nspname, c.relname) as place
      from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v') and c.relowner = to_regrole(quote_ident(current_user))
    ), wanted as (
      select o.oid, n.oid as schema, coalesce(a.attnum, 0) as attnum, a.attname
      from jsonb_to_recordset(${jsonParameter(wanted)}::text::jsonb) as w (schema text, name text, columns text[])
        join pg_namespace as n on n.nspname = w.schema
        join own as o on o.relnamespace = n.oid and o.relname = w.name
        left join lateral unnest(w.columns) as k (name) on true
        left join pg_attribute as a
          on a.attrelid = o.oid and a.attname = k.name and a.attnum > 0 and not a.attisdropped
      where w.columns is null or a.attnum is not null
    ), granted as (
      select d.classid, d.objid as oid, d.objsubid as attnum from pg_shdepend as d
      where d.refclassid = 'pg_authid'::regclass and d.refobjid = to_regrole(quote_ident(${role})) and d.deptype = 'a'
        and d.dbid = (select oid from pg_database where datname = current_database())
    ), relations as (
      select coalesce(w.oid, g.oid) as oid, w.columns
      from (
        select oid, array_agg(attnum::integer order by attnum) as attnums,
          string_agg(quote_ident(attname), ', ' order by attnum) as columns
        from wanted group by oid) as w
      full join (
        select oid, array_agg(attnum order by attnum) as attnums from granted
        where classid = 'pg_class'::regclass group by oid) as g using (oid)
      where w.attnums is distinct from g.attnums
    )
    select o.place, false as "isSchema", format('revoke all on %s from %I;', o.place, ${role}::text) || case
        when r.oid not in (select w.oid from wanted as w) then ''
        else format(' grant select%s on %s to %I;', ' (' || r.columns || ')', o.place, ${role}::text) end as statements
    from relations as r join own as o using (oid)
    union all
    select quote_ident(n.nspname), true, format(
        case when w.schema is null then 'revoke all on schema %I from %I;' else 'grant usage on schema %I to %I;' end,
        n.nspname, ${role}::text)
    from (select distinct schema from wanted) as w
      full join (select oid from granted where classid = 'pg_namespace'::regclass) as g on g.oid = w.schema
      join pg_namespace as n on n.oid = coalesce(w.schema, g.oid)
    where w.schema is null or g.oid is null`;
}

/** Reads the catalogs of those of the schemas that have one. */
async function readCatalogs(sql: ReplicaSql | TransactionSql<{ bigint: number }>, schemas: string[]) {
  const own = schemas.map((schema) => ({ schema, swap: schemasOf(schema).swap }));
  const contents = new Map<string, SchemaContents>();
  if (own.length === 0) return contents;
  const found = await sql<{ swap: string }[]>`
    select s as swap from unnest(${own.map(({ swap }) => swap)}::text[]) as s
    where to_regclass(s || '._tables') is not null and to_regclass(s || '._link_views') is not null`;
  const there = own.filter(({ swap }) => found.some((one) => one.swap === swap));
  if (there.length === 0) return contents;
  const rows = await sql.unsafe<({ nth: number } & SchemaContents)[]>(
    there
      .map(
        ({ swap }, nth) => `
          select ${nth} as nth, (select coalesce(json_agg(t.spec), '[]') from ${swap}._tables as t) as tables,
            (select coalesce(json_agg(json_build_object('name', v.name, 'fieldId', v.field_id)), '[]')
              from ${swap}._link_views as v) as "linkViews"`,
      )
      .join(" union all "),
  );
  for (const { nth, ...has } of rows) contents.set(there[nth]!.schema, has);
  return contents;
}
