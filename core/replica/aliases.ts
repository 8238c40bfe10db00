/** Old names that still answer after a rename; `sql/replica/aliases.sql` creates them in the change that renames. */
import { onReplica } from "./connection";
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

/** Returns the old names that still answer, by table. Empty if the last sync ran with an older version of Basetide. */
export function loadAliases({ sql, swap }: Replica): Promise<Alias[]> {
  return onReplica(async () => {
    const [state] = await sql<{ knows: boolean }[]>`
      select to_regclass(${`${swap}._aliases`}) is not null as knows`;
    if (!state?.knows) return [];
    return sql<Alias[]>`
      select w.table_id as "tableId", w.field_id as "fieldId", w.table_name as "table", w.column_name as "column",
        w.name, a.made_at as "madeAt", a.expires_at as "expiresAt"
      from ${sql.unsafe(swap)}.wanted_aliases() as w
        join ${sql.unsafe(swap)}._aliases as a on (a.scope, a.name) = (w.scope, w.name)
      order by w.table_name, w.field_id is not null, w.name`;
  });
}

/**
 * Removes the old names of columns whose time is over. Those of tables that queries hold are removed by a later call.
 *
 * @throws BasetideError `lease_lost`
 */
export async function expireAliases({ sql, swap }: Replica, epoch: number): Promise<void> {
  await onReplica(() => sql`select ${sql.unsafe(swap)}.expire_aliases(${epoch})`);
}
