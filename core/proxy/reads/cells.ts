/**
 * Converts a row back to the record that the source would return, for types whose column stores the whole cell. Cells
 * of other types (attachments, people, buttons …) cannot be restored: the source answers reads of them. Of most, it can
 * be restored that the cell is empty.
 */
import { type ColumnSpec, type ReadBack, traitsOf } from "../../replica";
import type { FieldType } from "../../source";

/** Converts a column's text, or texts, to the cell; undefined omits it, as the source omits empty cells. */
export type CellMaker = (value: string | null | (string | null)[]) => unknown;

const text: CellMaker = (value) => value ?? undefined;
const number: CellMaker = (value) => (value === null ? undefined : Number(value));
const list: CellMaker = (value) => value ?? undefined;
const numbers: CellMaker = (value) =>
  Array.isArray(value) ? value.map((item) => (item === null ? null : Number(item))) : undefined;

const makers = {
  text,
  number,
  list,
  date: text,
  checkbox: (value) => (value === "true" ? true : undefined),
  time: (value) => (typeof value === "string" ? isoTime(value) : undefined),
} satisfies Partial<Record<ReadBack, CellMaker>>;

/** Returns the conversion for cells of the column; undefined if the column does not store them completely. */
export function cellMaker({ type, columnType, result }: ColumnSpec): CellMaker | undefined {
  const { readsBack } = traitsOf(type);
  const isUnchanged = isText(result) || isDate(result);
  switch (readsBack) {
    case undefined:
      return undefined;
    case "list":
      return columnType === "text[]" ? list : undefined;
    case "result":
      if (isUnchanged) return text;
      return isNumber(result) ? number : undefined;
    case "number_result":
      if (columnType === "text") return isUnchanged ? text : undefined;
      return isNumber(result) ? number : undefined;
    case "time_result":
      if (result === "date") return (value) => (typeof value === "string" ? value.slice(0, 10) : undefined);
      return result === "date_time" ? makers.time : undefined;
    case "results":
      if (columnType !== "text[]") return undefined;
      if (isUnchanged) return list;
      return isNumber(result) ? numbers : undefined;
    default:
      return makers[readsBack];
  }
}

/**
 * Types of which the column stores a part of the cell, but is null only for an empty cell, or for one with an issue. Not
 * so buttons and generated texts: their cells hold more than what is blank.
 */
const NULL_IF_EMPTY = new Set<FieldType>([
  "attachment",
  "barcode",
  "collaborator",
  "collaborators",
  "created_by",
  "duration",
  "last_modified_by",
  "links",
]);

/** Does a null in the column show that the cell is empty, and that the source therefore omits it? */
export function isNullIfEmpty({ type, columnType }: ColumnSpec): boolean {
  // As text, a lookup whose elements are all empty is null, too.
  return NULL_IF_EMPTY.has(type) || (type === "lookup" && columnType === "text[]");
}

/** Are cells of the type text that is stored unchanged? */
export function isText(type: FieldType | undefined): boolean {
  return type !== undefined && traitsOf(type).readsBack === "text";
}

/** Are cells of the type dates? As the result of a computed field, they are stored as the text that they are. */
function isDate(type: FieldType | undefined): boolean {
  return type === "date" || type === "date_time";
}

/**
 * Are they the times at which records were created or modified? If a field of these shows the date only, SQL has only that,
 * and it is unknown whether formulas and orders of the source go by the time.
 */
export function isMoment(type: FieldType, result: FieldType | undefined): boolean {
  return (type === "created_time" || type === "last_modified_time") && result === "date_time";
}

/** Are cells of the type numbers that are stored exactly? */
export function isNumber(type: FieldType | undefined): boolean {
  return type !== undefined && traitsOf(type).readsBack === "number";
}

/** `2026-01-02 03:04:05.6` → `2026-01-02T03:04:05.600Z`, the source's format for times. */
function isoTime(value: string): string {
  return new Date(`${value.replace(" ", "T")}Z`).toISOString();
}
