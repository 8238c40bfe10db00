/** Views of the customer over our tables; `sql/replica/views.sql` keeps them through every change of shape. */
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/**
 * Fills the materialized views that a swap had to make again. One that cannot be filled (its query fails) is left to
 * its owner.
 */
export async function refreshViews({ sql, swap }: Replica): Promise<void> {
  await onReplica(async () => {
    const views = await sql<{ schema: string; name: string }[]>`
      delete from ${sql.unsafe(swap)}._views_to_refresh returning schema, name`;
    // Those that are made of others were noted after them.
    for (const { schema, name } of views) {
      await sql`refresh materialized view ${sql(schema)}.${sql(name)}`.catch(() => {});
    }
  });
}

/** Names in the replica's schema that are taken by what is not ours, in a writable database. */
export function foreignNames({ sql, schema, swap }: Replica): Promise<string[]> {
  return onReplica(async () => {
    const rows = await sql<{ name: string }[]>`
      select c.relname as name from pg_class as c
      where c.relnamespace = ${schema}::regnamespace and c.relname !~ '^_'
        and not exists (select from ${sql.unsafe(swap)}._tables as t where t.name = c.relname)
        and not exists (select from ${sql.unsafe(swap)}._link_views as l where l.name = c.relname)`;
    return rows.map(({ name }) => name);
  });
}
