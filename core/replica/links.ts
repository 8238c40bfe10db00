/** Follows links between records in the replica. */
import { byName } from "./locate";
import type { CatalogTable } from "./plan";
import { type Replica, requireOwn } from "./replica";
import type { ColumnSpec } from "./spec";

/** Returns the ids in the link cells `fieldId` of these records, found by primary key. Empty for unknown fields. */
export async function linkedIds(
  { sql, schema }: Replica,
  table: CatalogTable,
  fieldId: string,
  recordIds: readonly string[],
): Promise<string[]> {
  requireOwn(table);
  const { spec } = table;
  const column = columnOf(spec.columns, fieldId);
  if (!column || recordIds.length === 0) return [];
  const cells = column.columnType === "text[]" ? sql`unnest(${sql(column.name)})` : sql(column.name);
  return ids(
    () => sql<{ id: string | null }[]>`
      select distinct ${cells} as id from ${sql.unsafe(schema)}.${sql(spec.name)} where id = any (${recordIds as string[]})`,
  );
}

/**
 * Returns the ids of the records whose link cell `fieldId` holds one of these. Reads the whole table, about 100 ms for
 * 300,000 rows.
 */
export async function linkingIds(
  { sql, schema }: Replica,
  table: CatalogTable,
  fieldId: string,
  linked: readonly string[],
): Promise<string[]> {
  requireOwn(table);
  const { spec } = table;
  const column = columnOf(spec.columns, fieldId);
  if (!column || linked.length === 0) return [];
  const given = linked as string[];
  const holds =
    column.columnType === "text[]"
      ? sql`${sql(column.name)} && ${given}::text[]`
      : sql`${sql(column.name)} = any (${given}::text[])`;
  return ids(
    () => sql<{ id: string }[]>`select id from ${sql.unsafe(schema)}.${sql(spec.name)} where ${holds}`,
  );
}

function columnOf(columns: ColumnSpec[], fieldId: string): ColumnSpec | undefined {
  return columns.find((column) => column.fieldId === fieldId && column.type === "links");
}

/** @throws BasetideError `shape_changed` if the names have changed */
async function ids(query: () => PromiseLike<{ id: string | null }[]>): Promise<string[]> {
  return (await byName(query)).flatMap(({ id }) => id ?? []);
}
