/** Old names that still answer after a rename; `sql/replica/aliases.sql` creates them in the change that renames. */
import { isBasetideError } from "../errors";
import { onReplica, readValue } from "./connection";
import type { Replica } from "./replica";

export interface Alias {
  tableId: string;
  /** Null: the old name of the table itself. */
  fieldId: string | null;
  /** The table's current name. */
  table: string;
  /** The column's current name; null for the alias of a table. */
  column: string | null;
  /** The old name. */
  name: string;
  madeAt: Date;
  expiresAt: Date;
}

/** An old name that would still answer, but cannot. */
export interface LostAlias extends Alias {
  /** Why, for people. */
  obstacle: string;
}

/** Returns the old names that still answer, by table. */
export async function loadAliases(replica: Replica): Promise<Alias[]> {
  const all = await loadOldNames(replica);
  return all.filter(({ obstacle }) => obstacle === null).map(({ obstacle: _, ...alias }) => alias);
}

/** Returns the old names that are not kept, although their time is not over. */
export async function loadLostAliases(replica: Replica): Promise<LostAlias[]> {
  return (await loadOldNames(replica)).filter((one): one is LostAlias => one.obstacle !== null);
}

function loadOldNames({ sql, swap }: Replica): Promise<(Alias & { obstacle: string | null })[]> {
  return onReplica(async () => {
    const ours = sql.unsafe(swap);
    return sql<(Alias & { obstacle: string | null })[]>`
      select w.table_id as "tableId", w.field_id as "fieldId", w.table_name as "table", w.column_name as "column",
        w.name, a.made_at as "madeAt", a.expires_at as "expiresAt",
        case when w.field_id is not null
            then coalesce(${ours}.alias_obstacle(l.relation, w.name), case when not ${ours}.has_alias(l.relation, w.name)
              then 'another object has this name, or the table has too many columns' end)
          when not exists (select from pg_class as c where c.oid = a.view and c.relkind = 'v')
            then 'another object has this name' end as obstacle
      from ${ours}.wanted_aliases() as w
        join ${ours}._aliases as a on (a.scope, a.name) = (w.scope, w.name)
        cross join ${ours}.live_table(w.table_name) as l (relation)
      order by w.table_name, w.field_id is not null, w.name`;
  });
}

/**
 * Removes the old names of columns whose time is over. Those of tables that queries hold are left for a later call, and
 * listed in `_sync_issues`.
 *
 * @returns whether none is left
 * @throws BasetideError `lease_lost`
 */
export async function expireAliases({ sql, swap }: Replica, epoch: number): Promise<boolean> {
  return !(await readValue(
    () => sql<{ value: boolean }[]>`select ${sql.unsafe(swap)}.expire_aliases(${epoch}) as value`,
  ));
}

/** Postgres cannot update a published table whose replica identity is full, because it has a virtual column. */
const BARRED = "42P10";

/**
 * Runs `write`, which writes rows of the table. If aliases of its columns keep Postgres from that, drops them and runs
 * it again: the customer may choose a full replica identity at any time.
 *
 * @param epoch null for writes outside of a lease
 * @throws as `write`; BasetideError `replica_busy` if queries hold the table
 */
export async function withoutBarringAliases<T>(
  { sql, swap }: Replica,
  epoch: number | null,
  tableId: string,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isBasetideError(error) || error.details.sqlState !== BARRED) throw error;
    const areDropped = await readValue(
      () => sql<{ value: boolean }[]>`
        select ${sql.unsafe(swap)}.drop_barring_aliases(${epoch}, ${tableId}) as value`,
    );
    if (!areDropped) throw error;
    return await write();
  }
}
