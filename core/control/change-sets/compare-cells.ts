/** Compares cells that were written with cells that the source returns: it gives some of them another form. */
import type { CellValues } from "./operations";

/** Types of fields, as the source calls them, whose cells cannot be written. */
export const COMPUTED_TYPES: ReadonlySet<string> = new Set([
  "aiText",
  "autoNumber",
  "button",
  "count",
  "createdBy",
  "createdTime",
  "externalSyncSource",
  "formula",
  "lastModifiedBy",
  "lastModifiedTime",
  "multipleLookupValues",
  "rollup",
]);

/** Parts by which an object that was written is recognized in the one that is read. */
const IDENTITIES = ["id", "filename", "email", "name", "text"] as const;

/** Returns the keys of `cells` whose values the record, as it was read, does not have. */
export function differingCells(cells: CellValues, read: CellValues): string[] {
  return Object.keys(cells).filter((key) => !isSame(cells[key], read[key]));
}

function isSame(written: unknown, read: unknown): boolean {
  if (isEmpty(written) || isEmpty(read)) return isEmpty(written) && isEmpty(read);
  if (Array.isArray(written)) {
    return (
      Array.isArray(read) &&
      written.length === read.length &&
      written.every((one) => read.some((other) => isSame(one, other)))
    );
  }
  if (isObject(written)) {
    if (!isObject(read)) return isSame(written.name, read);
    const known = IDENTITIES.find((key) => key in written && key in read);
    // Of an attachment that is given by its URL alone, nothing returns as it was.
    // A person without an e-mail address is in SQL by name.
    const isNamed = typeof written.id === "string" && written.id === read.name;
    return isNamed || known === undefined || written[known] === read[known];
  }
  if (isObject(read)) return IDENTITIES.some((key) => read[key] === written);
  if (Array.isArray(read)) return String(written) === read.join(", ");
  return written === read || String(written).trim() === String(read).trim() || isSameMoment(written, read);
}

function isSameMoment(written: unknown, read: unknown): boolean {
  if (typeof written !== "string" || typeof read !== "string" || !/^\d{4}-\d\d/.test(read)) return false;
  return Date.parse(written) === Date.parse(read);
}

function isEmpty(cell: unknown): boolean {
  return (
    cell === undefined ||
    cell === null ||
    cell === "" ||
    cell === false ||
    (Array.isArray(cell) && cell.length === 0)
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
