/** Finds the tables in which records have their rows. A record never moves to another table. */

import { BasetideError, isBasetideError } from "../errors";
import { onReplica } from "./connection";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";

/**
 * @param all tables; those that belong to another role are not searched
 * @returns record ids by table id; ids without a row are in none
 * @throws BasetideError `shape_changed` if tables have been renamed, `replica_unavailable`
 */
export async function locateRecords(
  { sql, schema }: Replica,
  all: CatalogTable[],
  ids: readonly string[],
): Promise<Map<string, string[]>> {
  const tables = all.filter(({ taken }) => taken === undefined);
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

/**
 * Takes a read version (see `takeReadVersion`), and looks for records in a table.
 *
 * @returns `isLocated`: the table has one of the records
 * @throws BasetideError `shape_changed` if the table has been renamed, `replica_busy` if another transaction locks it,
 *   `replica_unavailable`
 */
export async function beginWrite(
  { sql, schema, swap }: Replica,
  { spec }: CatalogTable,
  ids: readonly string[],
): Promise<{ readVersion: number; isLocated: boolean }> {
  const [row] = await byName(
    () => sql<{ readVersion: number; isLocated: boolean }[]>`
      select ${sql.unsafe(swap)}.read_version() as "readVersion",
        exists (select from ${sql.unsafe(schema)}.${sql(spec.name)} where id = any (${ids as string[]}::text[])) as "isLocated"`,
  );
  return row!;
}

/** SQLSTATEs of a missing table, a missing column, and a column of another type. */
const OTHER_SHAPE = ["42P01", "42703", "42883", "42804", "22P02"];

/**
 * Runs a query that names tables and columns as the catalog had them; they may have been renamed since.
 *
 * @throws BasetideError `shape_changed` if the names have changed; what `onReplica` throws
 */
export async function byName<T>(query: () => PromiseLike<T>): Promise<T> {
  try {
    return await onReplica(async () => query());
  } catch (error) {
    if (!isBasetideError(error, "internal") || !OTHER_SHAPE.includes(String(error.details.sqlState)))
      throw error;
    throw new BasetideError("shape_changed", error.message, { cause: error });
  }
}
