/** Compares a proposal with the records as Airtable has them now, for the person who decides. */
import type { Base } from "../../core/control/bases";
import {
  type CellValues,
  type ChangeItem,
  differingCells,
  type RecordsNow,
  readRecordsNow,
} from "../../core/control/change-sets";
import { isBasetideError } from "../../core/errors";
import { rateLimiterOf } from "../../core/limiter";
import type { ColumnSpec, TableSpec } from "../../core/replica";
import type { Review, ReviewedItem } from "../../views/base/proposal";
import type { ConsoleContext } from "./page-kit";
import { cachedTables } from "./shape-cache";

/** Reads the records, one call for 100 of them. If Airtable cannot be asked, the review says so. */
export async function reviewOf(ctx: ConsoleContext, base: Base, items: ChangeItem[]): Promise<Review> {
  const tables = await cachedTables(ctx, base);
  const tableOf = ({ table }: ChangeItem) =>
    tables.find(({ tableId, sourceName }) => tableId === table || sourceName === table);
  const wanted = new Map<string, string[]>();
  for (const item of items) {
    const tableId = tableOf(item)?.tableId;
    if (tableId !== undefined && item.recordId !== null)
      wanted.set(tableId, [...(wanted.get(tableId) ?? []), item.recordId]);
  }
  try {
    const now = await readRecordsNow({ ...ctx, limiter: rateLimiterOf(ctx) }, base, wanted);
    return { items: items.map((item) => compare(item, tableOf(item), now)), problem: undefined };
  } catch (error) {
    if (!isBasetideError(error)) throw error;
    return { items: items.map((item) => compare(item, tableOf(item), undefined)), problem: error.message };
  }
}

/** @param now undefined: not known */
function compare(item: ChangeItem, table: TableSpec | undefined, now: RecordsNow | undefined): ReviewedItem {
  const { position, operation, recordId, fields, expected } = item;
  const record = recordId === null ? undefined : now?.get(recordId);
  const isKnown = now !== undefined && table !== undefined;
  const columnOf = (key: string) =>
    table?.columns.find(({ fieldId, sourceName }) => fieldId === key || sourceName === key);
  const current = (key: string) => record?.[columnOf(key)?.fieldId ?? key];
  const keys = [...new Set([...Object.keys(fields ?? {}), ...Object.keys(expected ?? {})])];
  const read: CellValues = Object.fromEntries(keys.map((key) => [key, current(key)]));
  const stale = new Set(record ? differingCells(expected ?? {}, read) : []);
  return {
    position,
    operation,
    recordId,
    table: table?.sourceName ?? item.table,
    title: record && table ? titleOf(record, table.columns) : undefined,
    isGone: isKnown && operation !== "create" && record === undefined,
    isStale: stale.size > 0,
    cells: keys.map((key) => ({
      name: columnOf(key)?.sourceName ?? key,
      before: isKnown ? read[key] : expected?.[key],
      after: fields && key in fields ? { value: fields[key] } : undefined,
      isStale: stale.has(key),
    })),
  };
}

/** The first column is the primary field's. */
function titleOf(record: CellValues, [primary]: ColumnSpec[]): string | undefined {
  const cell = primary && record[primary.fieldId];
  return typeof cell === "string" || typeof cell === "number" ? String(cell) : undefined;
}
