/** Finds the tables that records have their rows in. A record never moves from one table to another. */
import { byName } from "./by-name";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";

/**
 * @returns record ids by table id; those without a row are in none
 * @throws BasetideError `shape_changed` when the tables have other names by now, `replica_unavailable`
 */
export async function locateRecords(
  { sql, schema }: Replica,
  tables: CatalogTable[],
  ids: readonly string[],
): Promise<Map<string, string[]>> {
  if (tables.length === 0 || ids.length === 0) return new Map();
  const parts = tables.map(
    ({ spec }, index) => sql`${index > 0 ? sql`union all` : sql``}
      select ${spec.tableId}::text as "tableId", id from ${sql.unsafe(schema)}.${sql(spec.name)}
      where id = any (${ids as string[]}::text[])`,
  );
  const rows = await byName(() => sql<{ tableId: string; id: string }[]>`${parts}`);
  const located = Map.groupBy(rows, ({ tableId }) => tableId);
  return new Map([...located].map(([tableId, found]) => [tableId, found.map(({ id }) => id)]));
}
