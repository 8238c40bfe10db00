/** Drops the columns of deleted fields; see `sql/replica/drop-columns.sql`. */
import { CatalogReaders } from "./catalog-readers";
import { catalogRow, columnRenames, recomments } from "./change-shape";
import { renameIssueFields } from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import type { TableSpec } from "./spec";

/**
 * Changes `live` to `wanted`, which has a subset of its columns. What others have put on the others is reported in
 * `_sync_issues`.
 *
 * @throws BasetideError `replica_busy` if queries hold the table (try again), `shape_changed` if the live table is no
 *   longer `live`
 */
export async function dropColumns(
  replica: Replica,
  epoch: number,
  live: CatalogTable,
  wanted: TableSpec,
): Promise<void> {
  const { sql, schema, swap } = replica;
  const byId = new Map(wanted.columns.map((column) => [column.fieldId, column]));
  const spec = { ...wanted, columns: live.spec.columns.flatMap(({ fieldId }) => byId.get(fieldId) ?? []) };
  const statements = [
    ...renameIssueFields(swap, spec.name, columnRenames(live.spec, spec)),
    ...recomments(schema, spec, live.spec),
  ];
  await new CatalogReaders(replica).change(
    [`${schema}.${quoteIdent(live.spec.name)}`],
    (settled) => sql`
      select ${sql.unsafe(swap)}.drop_columns(${epoch}, ${live.shape},
        ${JSON.stringify(catalogRow(spec))}::text::jsonb, ${statements}::text[], ${settled}::text[])`,
  );
}
