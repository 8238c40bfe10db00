/**
 * Upserts: finds the row that a record without an id refers to.
 */
import { type WriteContext, writtenCell } from "./cells";
import { apiError, invalidRequest, unknownField } from "./errors";
import { findField, type SandboxField, type SandboxRow, type SandboxTable } from "./model";

/** Types that rows can be matched by (the reference, "Upsert"). */
const MERGEABLE = new Set([
  "number",
  "percent",
  "currency",
  "singleLineText",
  "multilineText",
  "email",
  "url",
  "phoneNumber",
  "singleSelect",
  "multipleSelects",
  "date",
]);
const MAX_MERGE_FIELDS = 3;

/**
 * The fields of `performUpsert`.
 *
 * @throws ApiError 422 for none, for more than three, and for an unknown or a computed one
 */
export function mergeOptions(table: SandboxTable, performUpsert: unknown): SandboxField[] {
  const names = (performUpsert as { fieldsToMergeOn?: unknown } | null)?.fieldsToMergeOn;
  if (!Array.isArray(names) || names.length === 0 || names.length > MAX_MERGE_FIELDS) throw invalidRequest();
  return names.map((name: unknown) => {
    const field = findField(table, String(name));
    if (!field) throw unknownField(String(name));
    if (!MERGEABLE.has(field.type))
      throw invalidRequest(
        `Field "${field.name}" cannot be used to merge records on: its type is ${field.type}`,
      );
    return field;
  });
}

/**
 * The row with the same merge values, or undefined if the record must be created.
 *
 * @throws ApiError 422 if a merge value is missing or more than one row matches
 */
export function upsertTarget(
  context: WriteContext,
  table: SandboxTable,
  merge: SandboxField[],
  fields: Record<string, unknown>,
): SandboxRow | undefined {
  const wanted = merge.map((field) => {
    const key = field.name in fields ? field.name : field.id;
    if (!(key in fields))
      throw invalidRequest(`Every record must have a value for "${field.name}" to merge on`);
    return writtenCell(context, field, fields[key], undefined);
  });
  if (wanted.includes(undefined)) return undefined;
  const texts = wanted.map((value) => JSON.stringify(value));
  const found: SandboxRow[] = [];
  for (const row of table.rows.values())
    if (merge.every((field, i) => JSON.stringify(row.cells[field.id]) === texts[i])) found.push(row);
  if (found.length > 1)
    throw apiError(
      422,
      "INVALID_VALUE_FOR_COLUMN",
      `Cannot update more than one record: ${found.length} records match the fields to merge on`,
    );
  return found[0];
}
