/**
 * Converts between cells as the REST API writes them and the values of formulas.
 */
import { parseIso } from "./dates";
import { ERROR, FormulaDate, FormulaError, type FormulaValue } from "./types";

/** A computed cell in an answer's `fields`; undefined leaves the key out. */
type FormulaCell =
  | string
  | number
  | boolean
  | null
  | { specialValue: "NaN" | "Infinity" | "-Infinity" }
  | { error: string }
  | FormulaCell[];

/** Converts a formula's value to a cell. Blank, "", false and [] are empty cells and give undefined; 0 does not. */
export function formulaResultToCell(value: FormulaValue): FormulaCell | undefined {
  if (value === null || value === "" || value === false) return undefined;
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(elementToCell);
  return elementToCell(value);
}

/**
 * Converts the cell of a field of type `fieldType` to a formula's value: a checkbox is never blank, dates are moments;
 * collaborators, attachments, barcodes, buttons and AI texts become their text.
 *
 * A link's record ids stay ids: the owner of the linked table replaces them by the rows' primary values. For computed
 * fields, pass the type of their `result`.
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

/** The member that represents an object as text; the first that exists wins. */
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
