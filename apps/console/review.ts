/** Compares a proposal with the records as Airtable has them now, for the person who decides. */
import { createHash } from "node:crypto";
import type { Base } from "../../core/control/bases";
import {
  type CellValues,
  type ChangeItem,
  differingCells,
  type RecordsNow,
  readRecordsNow,
} from "../../core/control/change-sets";
import { BasetideError, isBasetideError } from "../../core/errors";
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
    const reviewed = items.map((item) => compare(item, tableOf(item), now));
    return { items: reviewed, seen: fingerprint(reviewed), problem: undefined };
  } catch (error) {
    if (!isBasetideError(error)) throw error;
    const reviewed = items.map((item) => compare(item, tableOf(item), undefined));
    return { items: reviewed, seen: undefined, problem: error.message };
  }
}

/**
 * Returns what the chosen operations on records that have changed since must find instead of what they relied on: the
 * approver has seen it, and wants them all the same.
 *
 * @param seen of the review that the approver has seen
 * @throws BasetideError `conflict` if the records have changed again, or cannot be read now
 */
export async function takenAnyway(
  ctx: ConsoleContext,
  base: Base,
  items: ChangeItem[],
  { seen, only }: { seen: string; only: readonly number[] | undefined },
): Promise<Map<number, CellValues>> {
  const review = await reviewOf(ctx, base, items);
  if (review.problem !== undefined)
    throw new BasetideError("conflict", `The records cannot be read now: ${review.problem}`);
  if (review.seen !== seen)
    throw new BasetideError("conflict", "The records have changed again. Look at the proposal once more");
  const stale = review.items.filter(
    ({ position, isStale, isGone }) => isStale && !isGone && (only?.includes(position) ?? true),
  );
  return new Map(stale.map(({ position, now }) => [position, now]));
}

/** Tells apart two states of the records that have changed since the proposal. Undefined if there are none. */
function fingerprint(items: ReviewedItem[]): string | undefined {
  const stale = items.filter(({ isStale }) => isStale).map(({ position, now }) => [position, now]);
  return stale.length === 0
    ? undefined
    : createHash("sha256").update(JSON.stringify(stale)).digest("base64url");
}

/** @param now undefined: not known */
function compare(item: ChangeItem, table: TableSpec | undefined, now: RecordsNow | undefined): ReviewedItem {
  const { position, operation, recordId, fields, expected } = item;
  const record = recordId === null ? undefined : now?.get(recordId);
  const isKnown = now !== undefined && table !== undefined;
  const columnOf = (key: string) =>
    table?.columns.find(({ fieldId, sourceName }) => fieldId === key || sourceName === key);
  const current = (key: string) => record?.[columnOf(key)?.fieldId ?? key];
  const changed = Object.keys(fields ?? {});
  const wasThere = Object.keys(expected ?? {});
  const compared = Object.fromEntries(wasThere.map((key) => [key, current(key) ?? null]));
  const stale = new Set(record ? differingCells(expected ?? {}, compared) : []);
  const named = new Set([...changed, ...wasThere].map((key) => columnOf(key)?.fieldId ?? key));
  const rest = (record ? (table?.columns ?? []) : []).filter(
    ({ fieldId, filesOf, type }) =>
      !named.has(fieldId) && filesOf === undefined && type !== "hashed" && isFilled(record?.[fieldId]),
  );
  // What is empty is no loss.
  const shownKeys = [...new Set([...changed, ...wasThere])].filter(
    (key) => operation !== "delete" || stale.has(key) || isFilled(expected?.[key]),
  );
  return {
    position,
    operation,
    recordId,
    table: table?.sourceName ?? item.table,
    title: record && table ? titleOf(record, table.columns) : undefined,
    isGone: isKnown && operation !== "create" && record === undefined,
    isStale: stale.size > 0,
    now: compared,
    cells: shownKeys.map((key) => ({
      name: columnOf(key)?.sourceName ?? key,
      before: record || operation === "create" ? current(key) : expected?.[key],
      after: fields && key in fields ? { value: fields[key] } : undefined,
      proposedFrom: stale.has(key) ? { value: expected![key] } : undefined,
    })),
    others: rest.map(({ fieldId, sourceName }) => ({ name: sourceName, value: record![fieldId] })),
  };
}

function isFilled(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}

/** The first column is the primary field's. */
function titleOf(record: CellValues, [primary]: ColumnSpec[]): string | undefined {
  const cell = primary && record[primary.fieldId];
  return typeof cell === "string" || typeof cell === "number" ? String(cell) : undefined;
}
