/** Compares rows with the live table. Read-only. */
import { onReplica } from "./connection";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import { type Replica, requireOwn } from "./replica";
import type { ColumnSpec, Row } from "./spec";

/**
 * Returns the ids of the rows that the live table lacks, or has with a different value in one of `columns`.
 *
 * @throws BasetideError `replica_unavailable`; an error of Postgres if the table's columns have changed
 */
export function differingRows(
  { sql, schema }: Replica,
  table: CatalogTable,
  columns: readonly ColumnSpec[],
  rows: Row[],
): Promise<string[]> {
  const { spec } = table;
  const names = columns.map((column) => quoteIdent(column.name));
  const types = ["id text", ...columns.map((column, index) => `${names[index]} ${column.columnType}`)];
  const row = (alias: string) => `row(${["id", ...names].map((name) => `${alias}.${name}`).join(", ")})`;
  return onReplica(async () => {
    requireOwn(table);
    const found = await sql<{ id: string }[]>`
      select s.id from json_to_recordset(${JSON.stringify(rows)}::text::json) as s (${sql.unsafe(types.join(", "))})
        left join ${sql.unsafe(`${schema}.${quoteIdent(spec.name)}`)} as t on t.id = s.id
      where ${sql.unsafe(`${row("t")} is distinct from ${row("s")}`)}`;
    return found.map(({ id }) => id);
  });
}
