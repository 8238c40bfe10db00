/**
 * Back from a row to the record that the source would give: for those types whose column keeps all of the cell. What a
 * column does not keep (attachments, people, buttons …) cannot be given back, and is the source's to answer.
 */
import type { ColumnSpec } from "../../replica";
import type { FieldType } from "../../source";

/** A column's text, or texts, as the cell was; undefined leaves it out, as the source leaves out empty cells. */
export type CellMaker = (value: string | null | (string | null)[]) => unknown;

/** Cells that are text, and kept as it is. */
export const TEXTS: ReadonlySet<FieldType> = new Set([
  "text",
  "long_text",
  "rich_text",
  "email",
  "phone",
  "url",
  "single_select",
]);
/** Cells that are numbers. */
export const NUMBERS: ReadonlySet<FieldType> = new Set([
  "number",
  "currency",
  "percent",
  "rating",
  "count",
  "autonumber",
]);

const text: CellMaker = (value) => value ?? undefined;
const number: CellMaker = (value) => (value === null ? undefined : Number(value));
const list: CellMaker = (value) => value ?? undefined;
const numbers: CellMaker = (value) =>
  Array.isArray(value) ? value.map((item) => (item === null ? null : Number(item))) : undefined;

/** How cells of the column are made; undefined where the column does not keep all of them. */
export function cellMaker(column: ColumnSpec): CellMaker | undefined {
  const { type, columnType, result } = column;
  if (TEXTS.has(type)) return text;
  if (NUMBERS.has(type)) return number;
  switch (type) {
    case "checkbox":
      return (value) => (value === "true" ? true : undefined);
    case "date":
      return text;
    case "date_time":
      return (value) => (typeof value === "string" ? isoTime(value) : undefined);
    case "multiple_select":
      return list;
    case "links":
      return columnType === "text[]" ? list : undefined;
    case "formula":
      if (result && TEXTS.has(result)) return text;
      return result && NUMBERS.has(result) ? number : undefined;
    case "rollup":
      return columnType === "numeric" && result && NUMBERS.has(result) ? number : undefined;
    case "lookup":
      if (columnType !== "text[]" || !result) return undefined;
      if (TEXTS.has(result)) return list;
      return NUMBERS.has(result) ? numbers : undefined;
    default:
      return undefined;
  }
}

/** `2026-01-02 03:04:05.6` → `2026-01-02T03:04:05.600Z`, as the source writes times. */
function isoTime(value: string): string {
  return new Date(`${value.replace(" ", "T")}Z`).toISOString();
}
