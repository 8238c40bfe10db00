/** Creates and drops the indexes of a base's setting without blocking readers or writers. */
import { asBasetideError, isBasetideError } from "../errors";
import { onReplica, readValue } from "./connection";
import type { Replica } from "./replica";

/** `default`: a B-tree, or GIN for an array column. `trigram`: for `like '%…%'`, with the extension pg_trgm. */
export type IndexKind = "default" | "trigram";

export interface WantedIndex {
  tableId: string;
  /** A field's id, or `created_time`. */
  fieldId: string;
  kind: IndexKind;
}

/** The current SQL names of a table and a column that exist. */
interface IndexedColumn {
  tableId: string;
  fieldId: string;
  table: string;
  column: string;
}

/** program_limit_exceeded: a value is too long for an index. */
const INDEX_FULL = "54000";
/** Another session created or dropped the index meanwhile. */
const DONE_ALREADY: ReadonlySet<unknown> = new Set(["42P07", "42704"]);

/**
 * Creates and drops indexes until they match `wanted`. Indexes that cannot be created are listed in `_sync_issues`.
 *
 * @returns whether nothing is left to try again
 * @throws BasetideError `lease_lost`, `replica_unavailable`
 */
export async function applyIndexes(
  { sql, swap }: Replica,
  epoch: number,
  wanted: readonly WantedIndex[],
): Promise<boolean> {
  const ours = sql.unsafe(swap);
  const asked = JSON.stringify(
    wanted.map(({ tableId, fieldId, kind }) => ({ table_id: tableId, field_id: fieldId, kind })),
  );
  const changes = await onReplica(
    () => sql<{ name: string; statement: string }[]>`
      select name, statement from ${ours}.index_changes(${epoch}, ${asked}::text::jsonb)`,
  );
  let isDone = true;
  for (const { name, statement } of changes) {
    try {
      await onReplica(() => sql.unsafe(statement));
    } catch (caught) {
      const error = asBasetideError(caught);
      if (error.code === "replica_unavailable") throw error;
      isDone = false;
      if (error.code === "replica_busy" || DONE_ALREADY.has(error.details.sqlState)) continue;
      await onReplica(() => sql`select ${ours}.record_index_failure(${epoch}, ${name}, ${error.message})`);
    }
  }
  if (changes.length > 0) {
    await onReplica(() => sql`select ${ours}.record_index_issues(${asked}::text::jsonb)`);
  }
  return isDone;
}

/** Returns the current names of the indexed tables and columns, without those that no longer exist. */
export function indexedColumns(
  { sql, swap }: Replica,
  wanted: readonly WantedIndex[],
): Promise<IndexedColumn[]> {
  const asked = JSON.stringify(
    wanted.map(({ tableId, fieldId, kind }) => ({ table_id: tableId, field_id: fieldId, kind })),
  );
  return onReplica(
    () => sql<IndexedColumn[]>`
      select table_id as "tableId", field_id as "fieldId", table_name as "table", column_name as "column"
      from ${sql.unsafe(swap)}.wanted_indexes(${asked}::text::jsonb)`,
  );
}

/** Returns whether the extension pg_trgm is installed. */
export async function hasTrigrams({ sql }: Replica): Promise<boolean> {
  return readValue(
    () => sql<{ value: boolean }[]>`
      select exists (select from pg_extension where extname = 'pg_trgm') as value`,
  );
}

/**
 * Drops the index of the setting that could not hold a value, if `error` is about one. It is created again like any
 * missing index, and its failure then becomes an issue.
 *
 * @returns whether to repeat the operation that failed
 */
export async function dropFullIndexes(
  { sql, swap }: Replica,
  epoch: number | null,
  tableId: string,
  error: unknown,
): Promise<boolean> {
  if (!isBasetideError(error, "internal") || error.details.sqlState !== INDEX_FULL) return false;
  return readValue(
    () => sql<{ value: boolean }[]>`
      select ${sql.unsafe(swap)}.drop_full_indexes(${epoch}, ${tableId}, ${error.message}) as value`,
  );
}
