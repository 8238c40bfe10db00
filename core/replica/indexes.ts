/** Indexes that a base's setting asks for: made and dropped without keeping readers or writers waiting. */
import { asBasetideError, isBasetideError } from "../errors";
import { onReplica } from "./connection";
import type { Replica } from "./replica";

/** `default`: a B-tree, or GIN where the column is an array. `trigram`: for `like '%…%'`, with the extension pg_trgm. */
export type IndexKind = "default" | "trigram";

export interface WantedIndex {
  tableId: string;
  /** Or `created_time`. */
  fieldId: string;
  kind: IndexKind;
}

/** SQL names of today, of a table and a column that are there. */
export interface IndexedColumn {
  tableId: string;
  fieldId: string;
  table: string;
  column: string;
}

/** program_limit_exceeded: a value is too long for an index. */
const INDEX_FULL = "54000";
/** Somebody else made, or dropped, the index meanwhile. */
const DONE_ALREADY: ReadonlySet<unknown> = new Set(["42P07", "42704"]);

/**
 * Makes and drops indexes until there are those that are wanted. What cannot be is in `_sync_issues`.
 *
 * @returns whether nothing is left to be tried again
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

/** What the tables and columns of these are called now; without those that are gone. */
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

/** Is the extension pg_trgm installed there? */
export async function hasTrigrams({ sql }: Replica): Promise<boolean> {
  const [row] = await onReplica(
    () => sql<{ has: boolean }[]>`select exists (select from pg_extension where extname = 'pg_trgm') as has`,
  );
  return row!.has;
}

/**
 * Drops the index of the setting that could not hold a value, if `error` is about one. It is made again like any that is
 * missing, and its failure is then an issue.
 *
 * @returns whether what failed is to be tried again
 */
export async function dropFullIndexes(
  { sql, swap }: Replica,
  epoch: number | null,
  tableId: string,
  error: unknown,
): Promise<boolean> {
  if (!isBasetideError(error, "internal") || error.details.sqlState !== INDEX_FULL) return false;
  const [answer] = await onReplica(
    () => sql<{ dropped: boolean }[]>`
      select ${sql.unsafe(swap)}.drop_full_indexes(${epoch}, ${tableId}, ${error.message}) as dropped`,
  );
  return answer!.dropped;
}
