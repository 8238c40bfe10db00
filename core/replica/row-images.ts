/**
 * Applies row images to a live table, and reads the recent-writes log of the images that were applied.
 *
 * I1, I2. A row image is the state of a record that the source reported to a caller who held a read version. It is
 * applied only if no image of that record was applied after the read version was taken; see `row-images.sql` in
 * `sql/replica`.
 */
import { BasetideError, isBasetideError } from "../errors";
import type { SourceRecord } from "../source";
import { withoutBarringAliases } from "./aliases";
import { onReplica, onTable, readValue } from "./connection";
import { onOwnSession } from "./ended-session";
import { byName } from "./locate";
import { storable } from "./map-record-text";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import { type Replica, requireOwn } from "./replica";
import type { CellIssue, Row } from "./spec";

/**
 * Levels of nesting that a logged cell keeps. A source's cells have a few; Postgres' parser fails at some thousands.
 */
const MAX_LOG_DEPTH = 200;

/** A write of one page that takes longer is given up: triggers of the customer's may take any time. */
const LONGEST_WRITE_MS = 10_000;

export interface RowImageBatch {
  /** The lease's epoch; null for writes outside of a lease (a proxied write). */
  epoch: number | null;
  /** Taken before the source was asked. */
  readVersion: number;
  /** Mapped rows, each id once. */
  rows: Row[];
  /** Ids that the source no longer has. */
  gone: string[];
  issues: CellIssue[];
  /**
   * The records as the source returned them, for the recent-writes log, which then records all of `rows` and `gone`
   * whether they changed or not; absent from a sweep.
   */
  records?: SourceRecord[];
}

export interface Applied {
  inserted: number;
  updated: number;
  deleted: number;
  /** Ids whose image was too old and was not applied. */
  lost: string[];
}

/**
 * Applies row images to the table, as one transaction.
 *
 * @param signal cancels the statement
 * @throws BasetideError `shape_changed` if the rows were mapped for another shape, `lease_lost`,
 *   `replica_unavailable`, `replica_busy` with the detail `isOfRows` if another transaction locks the table or its rows;
 *   nothing is written after any of them
 */
export function applyRowImages(
  replica: Replica,
  table: CatalogTable,
  images: RowImageBatch,
  signal?: AbortSignal,
): Promise<Applied> {
  const { sql, swap } = replica;
  const byId = images.records && Object.fromEntries(images.records.map((record) => [record.id, record]));
  const { tableId } = table.spec;
  const apply = sql.unsafe(`${swap}.${quoteIdent(`apply_row_images_${tableId}`)}`);
  const write = async () => {
    const query: Cancelable<Applied[]> = sql<Applied[]>`
      select coalesce(inserted, 0) as inserted, coalesce(updated, 0) as updated, coalesce(deleted, 0) as deleted, lost
      from ${apply}(
        ${JSON.stringify(images.rows)}::text::json, ${images.epoch}, ${table.shape}, ${images.readVersion},
        ${images.rows.map((row) => row.id as string)}::text[], ${images.gone}::text[],
        ${images.issues.length > 0 ? JSON.stringify(issueRows(images.issues)) : null}::text::json,
        ${byId ? logText(byId) : null}::text::jsonb)`;
    const over = cancelLate(query, signal);
    try {
      const [applied] = await query;
      replica.planned(tableId);
      return applied!;
    } finally {
      over();
    }
  };
  return withoutBarringAliases(replica, images.epoch, tableId, () =>
    onTable(() => onOwnSession(sql, write)).catch(asShapeChanged),
  );
}

/** The table's function does not exist: it is dropped with the table. */
const NO_FUNCTION = "42883";

function asShapeChanged(error: unknown): never {
  if (!isBasetideError(error, "internal") || error.details.sqlState !== NO_FUNCTION) throw error;
  const { message, details } = error;
  throw new BasetideError("shape_changed", message, { cause: error, details });
}

interface Cancelable<T> extends Promise<T> {
  cancel(): void;
  /** Whether the driver has sent it. */
  active?: boolean;
}

/** Cancels the statement if it takes too long, or `signal` aborts while it runs. @returns ends that */
function cancelLate(query: Cancelable<unknown>, signal?: AbortSignal): () => void {
  const late = () => {
    if (query.active) query.cancel();
    else timer = setTimeout(late, LONGEST_WRITE_MS).unref();
  };
  let timer = setTimeout(late, LONGEST_WRITE_MS).unref();
  const stopped = () => {
    if (query.active) query.cancel();
  };
  signal?.addEventListener("abort", stopped, { once: true });
  return () => {
    signal?.removeEventListener("abort", stopped);
    clearTimeout(timer);
  };
}

/**
 * Stores a row image of a record whose table is not built yet, for the rebuild that is reading it.
 *
 * @param readVersion taken before the source was asked
 * @param record null: the record was deleted
 * @returns false if an image of the record was recorded after the read version was taken
 * @throws BasetideError `shape_changed` if the table exists by now: apply the image instead
 */
export function recordRowImage(
  { sql, swap }: Replica,
  tableId: string,
  readVersion: number,
  recordId: string,
  record: SourceRecord | null,
): Promise<boolean> {
  const image = record && logText(record);
  return readValue(
    () => sql<{ value: boolean }[]>`
      select ${sql.unsafe(swap)}.record_row_image(
        ${tableId}, ${readVersion}, ${recordId}, ${record === null}, ${image}::text::jsonb) as value`,
  );
}

/** An entry of the recent-writes log: the last image that was applied to a record. */
export interface RecentWrite {
  recordId: string;
  appliedVersion: number;
  /** The read version that was taken before the source was asked. */
  readVersion: number;
  /** The record was deleted. */
  isGone: boolean;
  /** The entry, or an earlier one of the record, is not a sweep's. */
  isWritten: boolean;
  /** Null if a sweep applied it. */
  record: SourceRecord | null;
}

/**
 * Returns the entries of one table after `appliedVersion`: all of them up to the greatest applied version among them.
 *
 * @throws BasetideError `replica_busy`, as `applyRowImages`
 */
export function recentWritesSince(
  { sql, swap }: Replica,
  tableId: string,
  appliedVersion: number,
): Promise<RecentWrite[]> {
  return onTable(
    () => sql<RecentWrite[]>`
      select record_id as "recordId", applied_version as "appliedVersion", read_version as "readVersion", gone as "isGone",
        written as "isWritten", image as record
      from ${sql.unsafe(swap)}.recent_writes_since(${tableId}, ${appliedVersion})`,
  );
}

/**
 * Returns a new read version, and for each of the records in the recent-writes log the read version of the image that
 * was applied last. That image, or a newer one, is in SQL.
 */
export async function latestReadVersions(
  { sql, swap }: Replica,
  tableId: string,
  ids: string[],
): Promise<{ readVersion: number; readVersions: Map<string, number> }> {
  const [row] = await onReplica(
    () => sql<{ readVersion: number; readVersions: Record<string, number> }[]>`
      select ${sql.unsafe(swap)}.read_version() as "readVersion", coalesce((
        select jsonb_object_agg(j.record_id, j.read_version) from ${sql.unsafe(swap)}._recent_writes as j
        where j.table_id = ${tableId} and j.record_id = any (${ids}::text[])), '{}') as "readVersions"`,
  );
  return { readVersion: row!.readVersion, readVersions: new Map(Object.entries(row!.readVersions)) };
}

/** Returns the ids of the tables that have entries in the recent-writes log. */
export async function loggedTables({ sql, swap }: Replica): Promise<string[]> {
  const rows = await onReplica(
    () => sql<{ id: string }[]>`select distinct table_id as id from ${sql.unsafe(swap)}._recent_writes`,
  );
  return rows.map(({ id }) => id);
}

/** A record that was written after an applied version, and not by a sweep alone. */
export interface LoggedWrite {
  tableId: string;
  recordId: string;
  appliedVersion: number;
}

/**
 * Returns the records of all tables that were deleted after `appliedVersion`, or written by something other than a
 * sweep, even if a sweep has written them again since.
 */
export function writesSince({ sql, swap }: Replica, appliedVersion: number): Promise<LoggedWrite[]> {
  return onReplica(
    () => sql<LoggedWrite[]>`
      select table_id as "tableId", record_id as "recordId", applied_version as "appliedVersion" from ${sql.unsafe(swap)}._recent_writes
      where applied_version > ${appliedVersion} and (gone or written)`,
  );
}

/**
 * Deletes entries up to `appliedVersion`; row images with an older read version are refused from then on.
 *
 * @throws BasetideError `lease_lost`: another lease may still need the entries
 */
export async function trimRecentWrites(
  { sql, swap }: Replica,
  epoch: number,
  appliedVersion: number,
): Promise<void> {
  await onReplica(() => sql`select ${sql.unsafe(swap)}.trim_recent_writes(${epoch}, ${appliedVersion})`);
}

/**
 * Yields the ids of all rows of the live table, in batches.
 *
 * @throws BasetideError `replica_busy`, as `applyRowImages`; `shape_changed` if the table has been renamed
 */
export async function* rowIds(
  { sql, schema }: Replica,
  table: CatalogTable,
): AsyncGenerator<string[], void, void> {
  requireOwn(table);
  // As text: the column of a damaged table may have another type.
  const query = sql<
    { id: string }[]
  >`select id::text as id from ${sql.unsafe(schema)}.${sql(table.spec.name)}`;
  const batches = query.cursor(10_000)[Symbol.asyncIterator]();
  const next = () => byName(() => onTable(() => batches.next()));
  for (let batch = await next(); !batch.done; batch = await next()) yield batch.value.map((row) => row.id);
}

/** Returns the issues with the column names of `_sync_issues`. */
export function issueRows(issues: CellIssue[]) {
  return issues.map((issue) => ({
    record_id: issue.recordId,
    field: issue.column,
    value: issue.value,
    reason: issue.reason,
  }));
}

/** JSON for jsonb, which accepts neither NUL nor unpaired surrogates, and fails where values nest too deeply. */
function logText(value: unknown): string {
  return JSON.stringify(logValue(value, 0));
}

function logValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return storable(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === MAX_LOG_DEPTH) return null;
  if (Array.isArray(value)) return value.map((item) => logValue(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [storable(key), logValue(part, depth + 1)]),
  );
}
