/**
 * Airtable's ids: three letters for the kind, followed by some characters. Their number and set are observed and not
 * guaranteed, so these checks require no more than our use of ids does: names of auxiliary tables, keys of objects,
 * parts of paths and of formulas.
 */

/** Postgres truncates names to 63 bytes, and the name of a table's key contains its id. */
const ID = /^[a-z]{3}[0-9A-Za-z_-]{1,50}$/;

/** Observed for every id, and for no name given by a user: matching text is treated as an id, not as a name. */
const EXACT = /^[a-z]{3}[0-9A-Za-z]{14}$/;

export type AirtableIdKind = "tbl" | "fld" | "rec";

export function isAirtableId(kind: AirtableIdKind, id: string): boolean {
  return id.startsWith(kind) && ID.test(id);
}

export function isExactId(kind: AirtableIdKind, text: string): boolean {
  return text.startsWith(kind) && EXACT.test(text);
}
