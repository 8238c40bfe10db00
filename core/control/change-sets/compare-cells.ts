/** Compares cells that were written with cells that the source returns: it gives some of them another form. */
import { isObject } from "../../json";
import { HOUR_MS } from "../../time-units";
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

/** Returns the cells that the source has in another form than they were written; undefined if there are none. */
export function otherForms(cells: CellValues, read: CellValues): CellValues | undefined {
  const keys = differingCells(cells, read);
  return keys.length === 0 ? undefined : Object.fromEntries(keys.map((key) => [key, read[key] ?? null]));
}

/**
 * Returns whether a record that was read could be what became of `cells`, as far as can be told without their fields: the
 * source cuts a time to its day, rewrites Markdown, and with `typecast` makes links of names and numbers of texts.
 */
export function couldBecome(cells: CellValues, read: CellValues): boolean {
  const keys = Object.keys(cells);
  // A record without any of them is a new one of somebody's.
  return keys.some((key) => !isEmpty(read[key])) && keys.every((key) => couldBe(cells[key], read[key]));
}

/** Returns whether the cells have files that are given by URL: nothing that is read tells whether it came from there. */
export function addsFilesByUrl(cells: CellValues): boolean {
  const isByUrl = (one: unknown) => isObject(one) && "url" in one && !("id" in one);
  return Object.values(cells).some((cell) => Array.isArray(cell) && cell.some(isByUrl));
}

function couldBe(written: unknown, read: unknown): boolean {
  if (isSame(written, read)) return true;
  if (isEmpty(written)) return false;
  // For example a checkbox that was given as “no”.
  if (isEmpty(read)) return typeof written === "string";
  if (Array.isArray(written) && Array.isArray(read))
    return written.every((one) => read.some((other) => couldBe(one, other)));
  if (typeof written === "number" && typeof read === "number") return Math.abs(written - read) < 1;
  if (typeof written === "string" && typeof read === "string") return couldBeText(written, read);
  return Array.isArray(written) !== Array.isArray(read) || typeof written !== typeof read;
}

function couldBeText(written: string, read: string): boolean {
  if (lettersOf(written) === lettersOf(read) || ID.test(written) !== ID.test(read)) return true;
  if (!ISO_DAY.test(read) || !/\d/.test(written)) return false;
  // Otherwise the field says whether the day or the month comes first.
  if (!ISO_DAY.test(written)) return true;
  return Math.abs(Date.parse(written) - Date.parse(read)) <= FARTHEST_ZONES_MS;
}

/** Of a record or a choice. */
const ID = /^(rec|sel)[A-Za-z0-9]{14}$/;
const ISO_DAY = /^\d{4}-\d\d-\d\d/;
/** From the first time zone in which a day begins to the last. */
const FARTHEST_ZONES_MS = 26 * HOUR_MS;

function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]/gu, "").toLowerCase();
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
  if (typeof read === "number" && typeof written === "string") return Number(written) === read;
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
