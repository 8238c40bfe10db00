/** Customers' views over our tables; `sql/replica/views.sql` preserves them through every change of shape. */
import { onReplica } from "./connection";
import { sendFilled } from "./merge";
import { checkReferences, LONGEST_SETTLING_MS, limited } from "./references";
import type { Replica } from "./replica";

/** Longest time for rows that subscribers wait for. */
const SEND_MS = 4 * LONGEST_SETTLING_MS;

interface ViewName {
  schema: string;
  name: string;
}

/**
 * Completes a change of shape outside of its transaction, which readers wait for.
 *
 * @returns false if something must be tried again
 */
export async function settleDependents(replica: Replica): Promise<boolean> {
  const areFilled = await refreshViews(replica);
  const areChecked = await checkReferences(replica);
  const areSent = await sendFilled(replica, SEND_MS);
  return areFilled && areChecked && areSent;
}

/**
 * Fills the materialized views that were created again and are still empty. One that cannot be filled now (its query
 * fails, or takes too long) is reported in `_sync_issues` and tried again at the next call.
 *
 * @param withinMs time limit for all of them
 * @returns whether none is left
 */
export async function refreshViews(replica: Replica, withinMs = LONGEST_SETTLING_MS): Promise<boolean> {
  const { sql, swap } = replica;
  const deadline = performance.now() + withinMs;
  // A view over another one can be filled only after that one.
  for (let isFurther = true; isFurther; ) {
    isFurther = false;
    const views = await onReplica(
      () => sql<ViewName[]>`
        select schema, name from ${sql.unsafe(swap)}._views_to_refresh order by schema, name`,
    );
    if (views.length === 0) return true;
    for (const view of views) {
      const leftMs = Math.ceil(deadline - performance.now());
      if (leftMs <= 0) return false;
      if (await refreshView(replica, view, leftMs)) isFurther = true;
    }
  }
  return false;
}

/** @returns whether the view is done */
async function refreshView({ sql, swap }: Replica, view: ViewName, withinMs: number): Promise<boolean> {
  const { schema, name } = view;
  try {
    // The note is removed together with filling the view, or stays.
    await onReplica(() =>
      limited(sql, withinMs, async (tx) => {
        const [known] = await tx<{ is_empty: boolean }[]>`
          select not c.relispopulated as is_empty from pg_class as c
          where c.oid = to_regclass(format('%I.%I', ${schema}::text, ${name}::text)) and c.relkind = 'm'`;
        if (known?.is_empty) await tx`refresh materialized view ${tx(schema)}.${tx(name)}`;
        await tx`select ${tx.unsafe(swap)}.view_refreshed(${schema}, ${name}, null)`;
      }),
    );
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await onReplica(() => sql`select ${sql.unsafe(swap)}.view_refreshed(${schema}, ${name}, ${reason})`);
    return false;
  }
}

/** Returns the names of tables that were dropped while names were pinned, by table id. */
export function retiredTables({ sql, swap }: Replica): Promise<Map<string, string>> {
  return onReplica(async () => {
    const rows = await sql<{ id: string; name: string }[]>`
      select r.table_id as id, r.name from ${sql.unsafe(swap)}._retired_tables as r`;
    return new Map(rows.map(({ id, name }) => [id, name]));
  });
}

/**
 * Returns the names in the replica's schema that objects which are not ours have taken. Leftovers of these tables of
 * the source are no obstacle: a rebuild replaces them.
 */
export function foreignNames({ sql, schema, swap }: Replica, tableIds: readonly string[]): Promise<string[]> {
  return onReplica(async () => {
    const rows = await sql<{ name: string }[]>`
      with relations as materialized (
        -- In one query with the other conditions, Postgres would check those first, for all relations of the database.
        select c.oid, c.relname as name from pg_class as c where c.relnamespace = ${schema}::regnamespace
      ), types as materialized (
        select y.typname as name from pg_type as y where y.typnamespace = ${schema}::regnamespace and y.typrelid = 0
      ), others as materialized (
        select r.name from relations as r
        where r.name !~ '^_' and r.name not in (select t.name::name from ${sql.unsafe(swap)}._tables as t)
          and not exists (select from ${sql.unsafe(swap)}._link_views as l where l.name = r.name)
          and not exists (select from ${sql.unsafe(swap)}._aliases as a where a.view = r.oid)
      )
      select o.name from others as o
      where o.name not in (
        select l.name from ${sql.unsafe(swap)}.leftovers() as l where l.table_id = any (${tableIds}::text[]))
      union
      select y.name from types as y where y.name !~ '^_'`;
    return rows.map(({ name }) => name);
  });
}
