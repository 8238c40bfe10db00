/** Finds the tables that records have their rows in. A record never moves from one table to another. */

import { BasetideError, isBasetideError } from "../errors";
import { onReplica } from "./connection";
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

/** SQLSTATEs of a table and of a column that are not there under that name, and of a column of another type. */
const OTHER_SHAPE = ["42P01", "42703", "42883", "42804", "22P02"];

/**
 * A query that names tables and columns as the catalog had them: people may have renamed them since.
 *
 * @throws BasetideError `shape_changed` when the names are others by now; what `onReplica` throws
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
