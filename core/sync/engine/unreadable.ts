/**
 * Reports in `_sync_issues` what of the source's answers cannot be read: definitions in its schema, and records.
 *
 * I2. What cannot be read is not gone: definitions stay as they were last known, and rows stay as they are.
 */
import { type Catalog, recordUnreadable, type UnreadableIssue } from "../../replica";
import type { RecordPage, SourceSchema, SourceTable, UnreadableRecord } from "../../source";
import type { BaseCache, TableCache } from "../state";
import { tableOf } from "./recalled-schema";
import type { Sweep } from "./sweep";

/** The most unreadable parts that are reported of one answer, or of one table. */
const MOST_REPORTED = 200;

/** Why a record cannot be read that an answer has under no id, or under that of another. */
export const NOT_AMONG_READABLE = "it exists, and is not among the records that can be read";

/** Returns the tables as they were last known: from the last schema, and those that only the catalog has. */
export function knownTables({ schema }: Pick<BaseCache, "schema">, catalog: Catalog): SourceTable[] {
  const known = new Map([...catalog].map(([id, { spec }]) => [id, tableOf({ ...spec, partial: undefined })]));
  for (const { partial: _, viewId: _view, isViewGone: _gone, ...table } of schema?.whole ??
    schema?.tables ??
    []) {
    known.set(table.id, table);
  }
  return [...known.values()];
}

/** Records the definitions that the latest schema could not be read of, unless these are recorded. */
export async function reportDefinitions(
  { replica, epoch, cache }: Pick<Sweep, "replica" | "epoch" | "cache">,
  { tables, unreadable = [], isRecalled }: SourceSchema,
  catalog: Catalog,
): Promise<void> {
  if (isRecalled) return;
  const nameOf = (id: string | undefined) =>
    catalog.get(id ?? "")?.spec.name ?? tables.find((table) => table.id === id)?.name ?? id ?? "";
  const reasons = new Map<string, UnreadableIssue>();
  for (const { tableId, label, reason } of unreadable.slice(0, MOST_REPORTED)) {
    const key = `${tableId} ${label}`;
    const before = reasons.get(key);
    reasons.set(key, {
      table: nameOf(tableId),
      recordId: "",
      field: label,
      reason: before ? `${before.reason}; ${reason}` : `${reason}. Its definition stays as it was last known`,
    });
  }
  const issues = [...reasons.values()];
  const state = JSON.stringify(issues);
  if (cache.unreadable === state) return;
  // Nothing is known of what an earlier worker has recorded.
  await recordUnreadable(replica, epoch, cache.unreadable === null ? "all" : "definitions", null, issues);
  cache.unreadable = state;
}

/** Returns the ids of a page's records that exist and cannot be read, and counts them as seen by the current scan. */
export function seeUnreadable({ fingerprints }: TableCache, page: RecordPage): readonly UnreadableRecord[] {
  const { unreadable = [] } = page;
  for (const { id } of unreadable) if (id !== undefined) fingerprints.see(id, 0n);
  return unreadable;
}

/**
 * Records the records of a table that could not be read. They are compared with SQL when they are next seen.
 *
 * @param isWhole the whole table was read: records without an id are exactly these
 */
export async function reportRecords(
  { replica, epoch }: Pick<Sweep, "replica" | "epoch">,
  table: TableCache,
  unreadable: readonly UnreadableRecord[],
  isWhole: boolean,
): Promise<void> {
  const { name } = table.live.spec;
  for (const { id } of unreadable) if (id !== undefined) table.fingerprints.expect(id);
  if (unreadable.length === 0 && !(isWhole && table.hasUnreadable)) return;
  const issues = new Map<string, UnreadableIssue>();
  const [first, ...others] = unreadable.filter(({ id }) => id === undefined);
  if (first) {
    const more = others.length > 0 ? ` (and ${others.length} more)` : "";
    issues.set("", { table: name, recordId: "", field: "record", reason: first.reason + more });
  }
  for (const { id, reason } of unreadable.slice(0, MOST_REPORTED)) {
    if (id !== undefined) issues.set(id, { table: name, recordId: id, field: "", reason });
  }
  await recordUnreadable(replica, epoch, isWhole ? "records" : "more", name, [...issues.values()]);
  if (isWhole) table.hasUnreadable = first !== undefined;
}
