/**
 * Back from a row to the record that the source would give: for those types whose column keeps all of the cell. What a
 * column does not keep (attachments, people, buttons …) cannot be given back, and is the source's to answer.
 */
import { type ColumnSpec, type ReadBack, traitsOf } from "../../replica";
import type { FieldType } from "../../source";

/** A column's text, or texts, as the cell was; undefined leaves it out, as the source leaves out empty cells. */
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

/** How cells of the column are made; undefined where the column does not keep all of them. */
export function cellMaker({ type, columnType, result }: ColumnSpec): CellMaker | undefined {
  const { readsBack } = traitsOf(type);
  switch (readsBack) {
    case undefined:
      return undefined;
    case "list":
      return columnType === "text[]" ? list : undefined;
    case "result":
      if (isText(result)) return text;
      return isNumber(result) ? number : undefined;
    case "number_result":
      return columnType === "numeric" && isNumber(result) ? number : undefined;
    case "results":
      if (columnType !== "text[]") return undefined;
      if (isText(result)) return list;
      return isNumber(result) ? numbers : undefined;
    default:
      return makers[readsBack];
  }
}

/** Cells of the type are text, and kept as it is. */
export function isText(type: FieldType | undefined): boolean {
  return type !== undefined && traitsOf(type).readsBack === "text";
}

/** Cells of the type are numbers, and kept. */
export function isNumber(type: FieldType | undefined): boolean {
  return type !== undefined && traitsOf(type).readsBack === "number";
}

/** `2026-01-02 03:04:05.6` → `2026-01-02T03:04:05.600Z`, as the source writes times. */
function isoTime(value: string): string {
  return new Date(`${value.replace(" ", "T")}Z`).toISOString();
}
