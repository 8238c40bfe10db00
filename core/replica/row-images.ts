/**
 * Applies images of records to a live table, and reads the recent-writes log of those that were.
 *
 * I1, I2. An image is what the source said of a record to somebody who held a read version. It is applied only if no
 * image of that record was applied after the read version was taken; see `apply_row_images` in `sql/replica`.
 */
import type { SourceRecord } from "../source";
import { onReplica } from "./connection";
import { storable } from "./map-record-text";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import type { CellIssue, Row } from "./spec";

/** Levels of a cell that an image keeps. A source's cells have a few; Postgres' parser ends at some thousands. */
const MAX_LOG_DEPTH = 200;

export interface RowImageBatch {
  /** The lease's epoch; null for what belongs to no lease (a proxied write). */
  epoch: number | null;
  /** Taken before the source was asked. */
  readVersion: number;
  /** Mapped rows, each id once. */
  rows: Row[];
  /** Ids that the source no longer has. */
  gone: string[];
  issues: CellIssue[];
  /**
   * The records as the source gave them, for the recent-writes log, which then notes all of `rows` and `gone` whether they
   * changed or not; absent from a sweep.
   */
  records?: SourceRecord[];
}

export interface Applied {
  inserted: number;
  updated: number;
  deleted: number;
  /** Ids whose image lost, and was not applied. */
  lost: string[];
}

/**
 * Applies images to the table, as one transaction.
 *
 * @throws BasetideError `shape_changed` when the rows were mapped for another shape, `lease_lost`,
 *   `replica_unavailable`; nothing is written after any
 */
export function applyRowImages(
  replica: Replica,
  table: CatalogTable,
  images: RowImageBatch,
): Promise<Applied> {
  const { sql, swap } = replica;
  const byId = images.records && Object.fromEntries(images.records.map((record) => [record.id, record]));
  return onReplica(async () => {
    const [applied] = await sql<Applied[]>`
      select * from ${sql.unsafe(swap)}.apply_row_images(
        ${images.epoch}, ${table.spec.tableId}, ${table.shape}, ${images.readVersion},
        ${JSON.stringify(images.rows)}::text::json, ${images.rows.map((row) => row.id as string)}::text[],
        ${images.gone}::text[], ${JSON.stringify(issueRows(images.issues))}::text::json, ${byId ? logText(byId) : null}::text::jsonb)`;
    return applied!;
  });
}

/**
 * Keeps an image of a record whose table is not built yet, for the rebuild that is reading it.
 *
 * @param readVersion taken before the source was asked
 * @param record null: the record was deleted
 * @returns false when the image lost to one noted after its read version
 * @throws BasetideError `shape_changed` when the table is there by now: apply it instead
 */
export function recordRowImage(
  { sql, swap }: Replica,
  tableId: string,
  readVersion: number,
  recordId: string,
  record: SourceRecord | null,
): Promise<boolean> {
  const image = record && logText(record);
  return onReplica(async () => {
    const [answer] = await sql<{ noted: boolean }[]>`
      select ${sql.unsafe(swap)}.record_row_image(
        ${tableId}, ${readVersion}, ${recordId}, ${record === null}, ${image}::text::jsonb) as noted`;
    return answer!.noted;
  });
}

/** An entry of the recent-writes log: the last image that was applied to a record. */
export interface RecentWrite {
  recordId: string;
  appliedVersion: number;
  /** The read version that was taken before the source was asked. */
  readVersion: number;
  /** The record was deleted. */
  isGone: boolean;
  /** Absent where a sweep applied it. */
  record: SourceRecord | null;
}

/** Entries of one table after `appliedVersion`: all of them up to the greatest applied version among them. */
export function recentWritesSince(
  { sql, swap }: Replica,
  tableId: string,
  appliedVersion: number,
): Promise<RecentWrite[]> {
  return onReplica(
    () => sql<RecentWrite[]>`
      select record_id as "recordId", applied_version as "appliedVersion", read_version as "readVersion", gone as "isGone", image as record
      from ${sql.unsafe(swap)}.recent_writes_since(${tableId}, ${appliedVersion})`,
  );
}

/**
 * A new read version, and for each of the records that the recent-writes log has: the read version before which the source was asked for the
 * image that was applied last. That image, or a newer one, is in SQL.
 */
export async function latestReadVersions(
  { sql, swap }: Replica,
  tableId: string,
  ids: string[],
): Promise<{ readVersion: number; readVersions: Map<string, number> }> {
  const [row] = await onReplica(
    () => sql<{ readVersion: number; readVersions: Record<string, number> }[]>`
      select nextval(${`${swap}._versions`}) as "readVersion", coalesce((
        select jsonb_object_agg(j.record_id, j.read_version) from ${sql.unsafe(swap)}._recent_writes as j
        where j.table_id = ${tableId} and j.record_id = any (${ids}::text[])), '{}') as "readVersions"`,
  );
  return { readVersion: row!.readVersion, readVersions: new Map(Object.entries(row!.readVersions)) };
}

/** Ids of the tables that the recent-writes log has entries of. */
export async function loggedTables({ sql, swap }: Replica): Promise<string[]> {
  const rows = await onReplica(
    () => sql<{ id: string }[]>`select distinct table_id as id from ${sql.unsafe(swap)}._recent_writes`,
  );
  return rows.map(({ id }) => id);
}

/** A record that was written after a applied version, and not by a sweep alone. */
export interface LoggedWrite {
  tableId: string;
  recordId: string;
  appliedVersion: number;
}

/**
 * Records of all tables that were written after `appliedVersion`: deleted by whomever, or written by somebody other than a sweep,
 * be it that one has touched them since.
 */
export function writesSince({ sql, swap }: Replica, appliedVersion: number): Promise<LoggedWrite[]> {
  return onReplica(
    () => sql<LoggedWrite[]>`
      select table_id as "tableId", record_id as "recordId", applied_version as "appliedVersion" from ${sql.unsafe(swap)}._recent_writes
      where applied_version > ${appliedVersion} and (gone or written)`,
  );
}

/**
 * Forgets entries up to `appliedVersion`; images with an older read version are refused from then on.
 *
 * @throws BasetideError `lease_lost`: what another's lease still needs is not ours to forget
 */
export async function trimRecentWrites(
  { sql, swap }: Replica,
  epoch: number,
  appliedVersion: number,
): Promise<void> {
  await onReplica(() => sql`select ${sql.unsafe(swap)}.trim_recent_writes(${epoch}, ${appliedVersion})`);
}

/** Ids of all rows of the live table, in batches. */
export async function* rowIds(
  { sql, schema }: Replica,
  table: CatalogTable,
): AsyncGenerator<string[], void, void> {
  const batches = sql<{ id: string }[]>`select id from ${sql.unsafe(schema)}.${sql(table.spec.name)}`.cursor(
    10_000,
  );
  for await (const batch of batches) yield batch.map((row) => row.id);
}

/** Issues under the names of `_sync_issues`' columns. */
export function issueRows(issues: CellIssue[]) {
  return issues.map((issue) => ({
    record_id: issue.recordId,
    field: issue.column,
    value: issue.value,
    reason: issue.reason,
  }));
}

/** JSON that jsonb takes: it knows neither NUL nor half a surrogate pair, and ends where values nest too deeply. */
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
