/**
 * Translates the requested order to sort keys, for types whose order is the same in Postgres as in the source: numbers,
 * dates, checkboxes, and single selects by their choices. How the source sorts text is not documented.
 */
import { type ColumnSpec, type SortKey, traitsOf } from "../../replica";
import { isMoment, isNumber } from "./cells";
import type { RequestedSort } from "./request";

/** @returns undefined if only the source knows the order */
export function sortKeys(sort: RequestedSort[], columns: readonly ColumnSpec[]): SortKey[] | undefined {
  const keys: SortKey[] = [];
  for (const { field, isDescending } of sort) {
    const found = columns.filter(({ fieldId, sourceName }) => fieldId === field || sourceName === field);
    const key = found.length === 1 ? keyOf(found[0]!) : undefined;
    if (!key) return undefined;
    keys.push({ ...key, isDescending });
  }
  return keys;
}

function keyOf({
  name,
  type,
  columnType,
  result,
  choices,
}: ColumnSpec): Omit<SortKey, "isDescending"> | undefined {
  switch (type) {
    case "checkbox":
    case "date":
    case "date_time":
      return { column: name };
    case "created_time":
    case "last_modified_time":
      return isMoment(type, result) ? { column: name } : undefined;
    case "single_select":
      return choices && { column: name, choices };
    case "formula":
      return columnType === "text" && isNumber(result) ? { column: name, isNumberAsText: true } : undefined;
    default: {
      const isNumeric = traitsOf(type).readsBack === "number" || (type === "rollup" && isNumber(result));
      return isNumeric && columnType === "numeric" ? { column: name } : undefined;
    }
  }
}
