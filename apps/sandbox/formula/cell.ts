/**
 * Between cells as the REST API writes them and the values that formulas compute with.
 */
import { parseIso } from "./dates";
import { ERROR, FormulaDate, FormulaError, type FormulaValue } from "./types";

/** A computed cell in an answer's `fields`; undefined means that the key is left out. */
export type FormulaCell =
  | string
  | number
  | boolean
  | null
  | { specialValue: "NaN" | "Infinity" | "-Infinity" }
  | { error: string }
  | FormulaCell[];

/** A formula's value as its cell. Blank, "", false and [] are empty cells, so they give undefined; 0 does not. */
export function formulaResultToCell(value: FormulaValue): FormulaCell | undefined {
  if (value === null || value === "" || value === false) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(elementToCell);
  return elementToCell(value);
}

/**
 * The cell of a field of type `fieldType` as a formula sees it: a checkbox is never blank, dates are moments,
 * collaborators, attachments, barcodes, buttons and AI texts stand for their text.
 *
 * A link's record ids stay ids: who holds the linked table puts the rows' primary values in their place.
 * For computed fields pass the type of their `result`.
 */
export function cellToFormulaValue(cell: unknown, fieldType: string): FormulaValue {
  if (cell === undefined || cell === null) return fieldType === "checkbox" ? false : null;
  if (Array.isArray(cell)) return cell.map((element: unknown) => cellToFormulaValue(element, fieldType));
  if (typeof cell === "string") return isDateType(fieldType) ? dateOf(cell) : cell;
  if (typeof cell === "number" || typeof cell === "boolean") return cell;
  return typeof cell === "object" ? objectToValue(cell as Record<string, unknown>) : ERROR;
}

function elementToCell(value: FormulaValue): FormulaCell {
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    return { specialValue: Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity" };
  }
  if (value instanceof FormulaError) return { error: value.text };
  if (value instanceof FormulaDate) return dateToCell(value);
  return Array.isArray(value) ? value.map(elementToCell) : (value as string | boolean | null);
}

function dateToCell(date: FormulaDate): FormulaCell {
  const moment = new Date(date.ms);
  if (Number.isNaN(moment.getTime())) return { error: ERROR.text };
  const iso = moment.toISOString();
  return date.hasTime ? iso : iso.slice(0, iso.indexOf("T"));
}

function isDateType(fieldType: string): boolean {
  return ["date", "dateTime", "createdTime", "lastModifiedTime"].includes(fieldType);
}

function dateOf(text: string): FormulaValue {
  return parseIso(text) ?? ERROR;
}

/** The member that stands for an object in text, first found wins. */
const TEXT_MEMBERS = ["text", "label", "name", "filename", "value", "email", "id"];

function objectToValue(cell: Record<string, unknown>): FormulaValue {
  if (typeof cell.error === "string") return new FormulaError(cell.error);
  if (typeof cell.specialValue === "string") return Number(cell.specialValue);
  for (const member of TEXT_MEMBERS) {
    const text = cell[member];
    if (typeof text === "string") return text;
  }
  return null;
}
