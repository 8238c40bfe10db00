/** Carries out what a plan changes in place: renames, comments, dropped tables. No row is rewritten. */
import { escapeLiteral } from "pg";
import { onReplica } from "./connection";
import { applyStatement, columnComment, comments, renameColumns, renameTables } from "./ddl";
import { quoteIdent } from "./naming";
import type { Catalog, CatalogTable, SchemaPlan } from "./plan";
import type { Replica } from "./replica";
import type { TableSpec } from "./spec";

/** Longest wait for a table that queries hold; while we wait, new queries on it wait too. */
export const LOCK_TIMEOUT = "100ms";

/** A row of `_tables`, as the SQL functions take it. */
export interface CatalogRow {
  table_id: string;
  name: string;
  shape: number;
  spec: TableSpec;
  apply_sql: string;
}

/**
 * Renames, comments on and drops tables as planned, in one transaction.
 *
 * @throws BasetideError `replica_busy` when a query holds a table for longer than LOCK_TIMEOUT (nothing was
 *   changed; try again), `lease_lost`
 */
export async function changeShape(
  replica: Replica,
  epoch: number,
  catalog: Catalog,
  { inPlace, drop }: Pick<SchemaPlan, "inPlace" | "drop">,
): Promise<void> {
  if (inPlace.length === 0 && drop.length === 0) return;
  const { schema, sql, swap } = replica;
  const changes = inPlace.map((spec) => ({ spec, live: catalog.get(spec.tableId)! }));
  const tableRenames = changes
    .filter(({ spec, live }) => spec.name !== live.spec.name)
    .map(({ spec, live }): [string, string] => [live.spec.name, spec.name]);
  const statements = [
    ...drop.flatMap((spec) => [
      `drop table ${schema}.${quoteIdent(spec.name)}`,
      `delete from ${schema}._sync_issues where table_name = ${escapeLiteral(spec.name)}`,
    ]),
    ...renameTables(schema, tableRenames),
    ...changes.flatMap(({ spec, live }) => columnStatements(schema, spec, live)),
  ];
  const rows = changes.map(({ spec, live }) => catalogRow(schema, spec, live.shape + 1));
  await onReplica(
    () => sql`select ${sql.unsafe(swap)}.change_shape(
      ${epoch}, ${LOCK_TIMEOUT}, ${statements}::text[], ${JSON.stringify(rows)}::text::jsonb, ${drop.map((spec) => spec.tableId)}::text[])`,
  );
}

/** The catalog's row for a table that is, or will be, live in `schema` (quoted). */
export function catalogRow(schema: string, spec: TableSpec, shape: number): CatalogRow {
  const table = `${schema}.${quoteIdent(spec.name)}`;
  return { table_id: spec.tableId, name: spec.name, shape, spec, apply_sql: applyStatement(table, spec) };
}

function columnStatements(schema: string, spec: TableSpec, live: CatalogTable): string[] {
  const table = `${schema}.${quoteIdent(spec.name)}`;
  const before = new Map(live.spec.columns.map((column) => [column.fieldId, column]));
  const renamed = spec.columns.filter((column) => before.get(column.fieldId)!.name !== column.name);
  const recommented = spec.columns.filter((column) => {
    const old = before.get(column.fieldId)!;
    return old.sourceName !== column.sourceName || old.description !== column.description;
  });
  const isTableRecommented =
    live.spec.sourceName !== spec.sourceName || live.spec.description !== spec.description;
  return [
    ...renameColumns(
      schema,
      spec.name,
      renamed.map((column) => [before.get(column.fieldId)!.name, column.name]),
    ),
    ...(isTableRecommented ? comments(schema, spec.name, spec, []) : []),
    ...recommented.map((column) => columnComment(table, column)),
  ];
}
