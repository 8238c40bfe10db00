/** Tables that an operator has copied into new ones, and the columns that a table has used: `sql/replica/shapes.sql`. */
import { onReplica, readValue } from "./connection";
import type { Replica } from "./replica";

/** Columns that a table of Postgres can have in its life: dropped ones count. */
export const POSTGRES_COLUMNS = 1600;

export interface ColumnSlots {
  /** SQL name of the table. */
  name: string;
  /** Columns that it has or had. */
  used: number;
  dropped: number;
}

/** Returns how many columns each table has used. */
export function columnSlots({ sql, swap }: Replica): Promise<ColumnSlots[]> {
  return onReplica(
    () => sql<ColumnSlots[]>`select name, used, dropped from ${sql.unsafe(swap)}.column_slots()`,
  );
}

/**
 * Has the table copied into a new one by the next sync: one that has no room for another column, or has lost its `id`.
 *
 * @param isForced also if something is lost
 * @returns what others have put on the table and lose; unless forced, nothing is done if there is any
 * @throws BasetideError `destination_invalid` if something needs the table
 */
export function replaceTable({ sql, swap }: Replica, table: string, isForced: boolean): Promise<string[]> {
  return readValue(
    () => sql<{ value: string[] }[]>`
      select ${sql.unsafe(swap)}.replace_table(${table}, ${isForced}) as value`,
  );
}
