/** What a database has that may use the names of columns: views, functions and triggers of its customers. */
import { onReplica } from "./connection";
import type { Replica } from "./replica";
import { MOST_TEXT_READ, MOST_USERS } from "./statements";

export interface AliasUsers {
  /** Views that depend on an old name, with the names: the table's id (empty for the name of a table), and the name. */
  views: { name: string; text: string; aliases: { scope: string; name: string }[] }[];
  /** Functions and procedures in SQL or PL/pgSQL, and their bodies, whatever they use. */
  functions: { name: string; text: string }[];
  /** Triggers on the base's tables, and the bodies of their functions. */
  triggers?: { name: string; tableId: string; text: string }[];
}

export function aliasUsers(replica: Replica): Promise<AliasUsers> {
  return onReplica(async () => ({ views: await viewsOverAliases(replica), ...(await textsOf(replica)) }));
}

/** Returns functions and triggers, whose texts may use any name. */
export function namesInTexts(
  replica: Replica,
): Promise<Required<Pick<AliasUsers, "functions" | "triggers">>> {
  return onReplica(() => textsOf(replica));
}

async function textsOf(replica: Replica): Promise<Required<Pick<AliasUsers, "functions" | "triggers">>> {
  const { sql } = replica;
  return {
    functions: await sql<AliasUsers["functions"]>`
      select p.oid::regprocedure::text as name, left(p.prosrc, ${MOST_TEXT_READ}) as text
      from pg_proc as p join pg_language as l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
      where p.pronamespace <> all (array['pg_catalog', 'information_schema', ${replica.swap}]::regnamespace[]::oid[])
        and p.prokind in ('f', 'p') and p.prosrc <> ''
        and not exists (
          select from pg_depend as d
          where (d.classid, d.objid, d.deptype) = ('pg_proc'::regclass, p.oid, 'e'))
        -- An alias before Postgres 18 is a function of ours.
        and not (p.proowner = (select r.oid from pg_roles as r where r.rolname = current_user)
          and starts_with(obj_description(p.oid, 'pg_proc'), 'The old name of the column '))
      order by 1 limit ${MOST_USERS}`,
    triggers: await sql<Required<AliasUsers>["triggers"]>`
      select format('%I on %s', g.tgname, g.tgrelid::regclass) as name, t.table_id as "tableId",
        left(p.prosrc, ${MOST_TEXT_READ}) as text
      from ${sql.unsafe(replica.swap)}._tables as t
        join pg_trigger as g on g.tgrelid = ${sql.unsafe(replica.swap)}.live_table(t.name) and not g.tgisinternal
        join pg_proc as p on p.oid = g.tgfoid
        join pg_language as l on l.oid = p.prolang and l.lanname not in ('internal', 'c')
      order by 1 limit ${MOST_USERS}`,
  };
}

function viewsOverAliases({ sql, schema, swap }: Replica): Promise<AliasUsers["views"]> {
  const ours = sql.unsafe(swap);
  return sql<AliasUsers["views"]>`
    with old as materialized (
      select a.scope, a.name, 'pg_class'::regclass::oid as class, c.attrelid as object, c.attnum::integer as part
      from ${ours}._aliases as a join ${ours}._tables as t on t.table_id = a.scope
        join pg_attribute as c on c.attrelid = ${ours}.live_table(t.name) and c.attname = a.name and c.attgenerated = 'v'
      union all
      select a.scope, a.name, 'pg_class'::regclass, a.view, null from ${ours}._aliases as a where a.view is not null
      union all
      select a.scope, a.name, 'pg_proc'::regclass, p.oid, null
      from ${ours}._aliases as a join ${ours}._tables as t on t.table_id = a.scope
        join pg_class as c on c.oid = ${ours}.live_table(t.name)
        join pg_proc as p on p.pronamespace = ${schema}::regnamespace and p.proname = a.name
          and p.pronargs = 1 and p.proargtypes[0] = c.reltype
    )
    select c.oid::regclass::text as name, pg_get_viewdef(c.oid) as text,
      json_agg(distinct jsonb_build_object('scope', o.scope, 'name', o.name)) as aliases
    from old as o
      join pg_depend as d on d.refclassid = o.class and d.refobjid = o.object
        and (o.part is null or d.refobjsubid = o.part)
      join pg_rewrite as r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      join pg_class as c on c.oid = r.ev_class and c.oid <> o.object
    where c.oid not in (select a.view from ${ours}._aliases as a where a.view is not null)
    group by c.oid order by 1 limit ${MOST_USERS}`;
}
