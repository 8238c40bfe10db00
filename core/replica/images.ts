/**
 * Applies images of records to a live table, and reads the journal of those that were.
 *
 * I1, I2. An image is what the source said of a record to somebody who held a ticket. It is applied only if no
 * image of that record was applied after the ticket was taken; see `apply_images` in `sql/replica`.
 */
import type { SourceRecord } from "../source";
import { onReplica } from "./connection";
import { storable } from "./map-record-text";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import type { CellIssue, Row } from "./spec";

/** Levels of a cell that an image keeps. A source's cells have a few; Postgres' parser ends at some thousands. */
const MAX_JOURNAL_DEPTH = 200;

export interface Images {
  /** The lease's epoch; null for what belongs to no lease (a proxied write). */
  epoch: number | null;
  /** Taken before the source was asked. */
  ticket: number;
  /** Mapped rows, each id once. */
  rows: Row[];
  /** Ids that the source no longer has. */
  gone: string[];
  issues: CellIssue[];
  /**
   * The records as the source gave them, for the journal, which then notes all of `rows` and `gone` whether they
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
export function applyImages(replica: Replica, table: CatalogTable, images: Images): Promise<Applied> {
  const { sql, swap } = replica;
  const byId = images.records && Object.fromEntries(images.records.map((record) => [record.id, record]));
  return onReplica(async () => {
    const [applied] = await sql<Applied[]>`
      select * from ${sql.unsafe(swap)}.apply_images(
        ${images.epoch}, ${table.spec.tableId}, ${table.shape}, ${images.ticket},
        ${JSON.stringify(images.rows)}::text::json, ${images.rows.map((row) => row.id as string)}::text[],
        ${images.gone}::text[], ${JSON.stringify(issueRows(images.issues))}::text::json, ${byId ? journalText(byId) : null}::text::jsonb)`;
    return applied!;
  });
}

/**
 * Keeps an image of a record whose table is not built yet, for the rebuild that is reading it.
 *
 * @param ticket taken before the source was asked
 * @param record null: the record was deleted
 * @returns false when the image lost to one noted after its ticket
 * @throws BasetideError `shape_changed` when the table is there by now: apply it instead
 */
export function noteImage(
  { sql, swap }: Replica,
  tableId: string,
  ticket: number,
  recordId: string,
  record: SourceRecord | null,
): Promise<boolean> {
  const image = record && journalText(record);
  return onReplica(async () => {
    const [answer] = await sql<{ noted: boolean }[]>`
      select ${sql.unsafe(swap)}.note_image(
        ${tableId}, ${ticket}, ${recordId}, ${record === null}, ${image}::text::jsonb) as noted`;
    return answer!.noted;
  });
}

/** An entry of the journal: the last image that was applied to a record. */
export interface JournalEntry {
  recordId: string;
  stamp: number;
  /** The ticket that was taken before the source was asked. */
  asked: number;
  /** The record was deleted. */
  isGone: boolean;
  /** Absent where a sweep applied it. */
  record: SourceRecord | null;
}

/** Entries of one table after `stamp`: all of them up to the greatest stamp among them. */
export function journalSince(
  { sql, swap }: Replica,
  tableId: string,
  stamp: number,
): Promise<JournalEntry[]> {
  return onReplica(
    () => sql<JournalEntry[]>`
      select record_id as "recordId", stamp, asked, gone as "isGone", image as record
      from ${sql.unsafe(swap)}.journal_since(${tableId}, ${stamp})`,
  );
}

/**
 * A new ticket, and for each of the records that the journal has: the ticket before which the source was asked for the
 * image that was applied last. That image, or a newer one, is in SQL.
 */
export async function latestAsked(
  { sql, swap }: Replica,
  tableId: string,
  ids: string[],
): Promise<{ ticket: number; asked: Map<string, number> }> {
  const [row] = await onReplica(
    () => sql<{ ticket: number; asked: Record<string, number> }[]>`
      select nextval(${`${swap}._tickets`}) as ticket, coalesce((
        select jsonb_object_agg(j.record_id, j.asked) from ${sql.unsafe(swap)}._journal as j
        where j.table_id = ${tableId} and j.record_id = any (${ids}::text[])), '{}') as asked`,
  );
  return { ticket: row!.ticket, asked: new Map(Object.entries(row!.asked)) };
}

/** Ids of the tables that the journal has entries of. */
export async function journalledTables({ sql, swap }: Replica): Promise<string[]> {
  const rows = await onReplica(
    () => sql<{ id: string }[]>`select distinct table_id as id from ${sql.unsafe(swap)}._journal`,
  );
  return rows.map(({ id }) => id);
}

/** A record that was written after a stamp, and not by a sweep alone. */
export interface JournalledWrite {
  tableId: string;
  recordId: string;
  stamp: number;
}

/**
 * Records of all tables that were written after `stamp`: deleted by whomever, or written by somebody other than a sweep,
 * be it that one has touched them since.
 */
export function writesSince({ sql, swap }: Replica, stamp: number): Promise<JournalledWrite[]> {
  return onReplica(
    () => sql<JournalledWrite[]>`
      select table_id as "tableId", record_id as "recordId", stamp from ${sql.unsafe(swap)}._journal
      where stamp > ${stamp} and (gone or written)`,
  );
}

/**
 * Forgets entries up to `stamp`; images with an older ticket are refused from then on.
 *
 * @throws BasetideError `lease_lost`: what another's lease still needs is not ours to forget
 */
export async function trimJournal({ sql, swap }: Replica, epoch: number, stamp: number): Promise<void> {
  await onReplica(() => sql`select ${sql.unsafe(swap)}.trim_journal(${epoch}, ${stamp})`);
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
function journalText(value: unknown): string {
  return JSON.stringify(journalled(value, 0));
}

function journalled(value: unknown, depth: number): unknown {
  if (typeof value === "string") return storable(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth === MAX_JOURNAL_DEPTH) return null;
  if (Array.isArray(value)) return value.map((item) => journalled(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [storable(key), journalled(part, depth + 1)]),
  );
}
