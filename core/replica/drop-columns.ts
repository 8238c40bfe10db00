/**
 * Drops the columns of deleted fields in place, if no object of a customer depends on them; see
 * `sql/replica/drop-columns.sql`.
 */
import { CatalogReaders } from "./catalog-readers";
import { catalogRow, columnRenames, LOCK_TIMEOUT, recomments } from "./change-shape";
import { renameColumns, renameIssueFields } from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import type { TableSpec } from "./spec";

/**
 * Changes `live` to `wanted`, which has a subset of its columns.
 *
 * @returns false, with nothing done, if something depends on a column that would be dropped: swap in a new table
 * @throws BasetideError `replica_busy` if queries hold the table (try again), `shape_changed` if the live table is no
 *   longer `live`
 */
export async function dropColumns(
  replica: Replica,
  epoch: number,
  live: CatalogTable,
  wanted: TableSpec,
): Promise<boolean> {
  const { sql, schema, swap } = replica;
  const byId = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  const spec = { ...wanted, columns: live.spec.columns.flatMap(({ fieldId }) => byId.get(fieldId) ?? []) };
  const columns = columnRenames(live.spec, spec);
  const renames = [
    ...renameColumns(schema, live.spec.name, columns),
    ...renameIssueFields(swap, spec.name, columns),
  ];
  return new CatalogReaders(replica).change([`${schema}.${quoteIdent(live.spec.name)}`], async (settled) => {
    const [answer] = await sql<{ dropped: boolean }[]>`
        select ${sql.unsafe(swap)}.drop_columns(${epoch}, ${LOCK_TIMEOUT}, ${live.shape},
          ${JSON.stringify(catalogRow(schema, spec))}::text::jsonb, ${renames}::text[],
          ${recomments(schema, spec, live.spec)}::text[], ${settled}::text[]) as dropped`;
    return answer!.dropped;
  });
}
