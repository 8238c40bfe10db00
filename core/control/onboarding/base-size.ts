/** Measures a base before its first sync, with a few calls: the source does not report how many records there are. */
import { isBasetideError } from "../../errors";
import type { MeteredSource } from "../../limiter";
import type { SourceTable } from "../../source";

/** Tables whose first page is read: a call each, and the user waits. */
const MEASURED_TABLES = 10;

export interface BaseSize {
  tables: number;
  /** At least this many. */
  records: number;
  /** Calls that read all tables once, at least. */
  calls: number;
  /** False if a table has more records than were counted. */
  isExact: boolean;
}

/**
 * Reads the first page of the first tables.
 *
 * @throws BasetideError the source's error for the first table; if another one cannot be read, it is not counted
 */
export async function measureBase(
  source: MeteredSource,
  sourceBaseId: string,
  tables: SourceTable[],
  signal: AbortSignal,
): Promise<BaseSize> {
  const size = { tables: tables.length, records: 0, calls: 0, isExact: tables.length <= MEASURED_TABLES };
  const pages = tables.slice(0, MEASURED_TABLES).map(async (table, index) => {
    // Records are only counted, so no other cell is transferred: people have not chosen yet what is copied.
    const part = { fields: [table.primaryFieldId] };
    try {
      return await source.send((connection) => connection.listPage(sourceBaseId, table, part, signal));
    } catch (error) {
      if (index === 0 || !isBasetideError(error)) throw error;
      return null;
    }
  });
  for (const page of await Promise.all(pages)) {
    const hasMore = page?.offset !== undefined;
    size.records += page?.size ?? 0;
    size.calls += hasMore ? 2 : 1;
    if (!page || hasMore) size.isExact = false;
  }
  size.calls += Math.max(0, tables.length - MEASURED_TABLES);
  return size;
}
