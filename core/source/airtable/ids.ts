/**
 * Airtable's ids: three letters that say of what, and some characters behind them. How many and which is observed and
 * not promised, so no more is asked of them than what they are used for here: names of tables aside, keys of objects,
 * parts of paths and of formulas.
 */

/** Postgres keeps 63 bytes of a name, and a table's key is called after its id. */
const ID = /^[a-z]{3}[0-9A-Za-z_-]{1,50}$/;

/** Observed of every id, and of no name that anybody has given: what looks so is taken for an id, not for a name. */
const EXACT = /^[a-z]{3}[0-9A-Za-z]{14}$/;

export type AirtableIdKind = "tbl" | "fld" | "rec";

export function isAirtableId(kind: AirtableIdKind, id: string): boolean {
  return id.startsWith(kind) && ID.test(id);
}

export function isExactId(kind: AirtableIdKind, text: string): boolean {
  return text.startsWith(kind) && EXACT.test(text);
}
