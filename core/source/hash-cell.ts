/**
 * Hashes cells with a key: equal cells have equal hashes, and without the key no cell can be found by
 * trying values.
 */
import { createHmac } from "node:crypto";
import { nestsDeeper } from "../nesting";

/** Returns 64 hexadecimal digits for a cell that is not empty. */
export type CellHash = (cell: unknown) => string;

const HASH = /^[0-9a-f]{64}$/;
/** The most levels of a cell whose parts are sorted. Airtable's have at most ten. */
const MAX_LEVELS = 100;

/** @param key of the base, in any form of text; it never changes */
export function createCellHash(key: string): CellHash {
  return (cell) => createHmac("sha256", key).update(textOf(cell)).digest("hex");
}

/** May the value be a hash of a cell? */
export function isCellHash(value: unknown): value is string {
  return typeof value === "string" && HASH.test(value);
}

/**
 * Returns the text that is hashed: a string as it is, so that the same e-mail address has the same hash in every field;
 * a person as the copy shows people (e-mail, else name, else id); anything else as JSON with sorted keys.
 */
function textOf(cell: unknown): string {
  if (typeof cell === "string") return cell;
  if (nestsDeeper(cell, MAX_LEVELS)) return "(nested too deeply)";
  return personText(cell) ?? JSON.stringify(canonical(cell));
}

function canonical(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(canonical);
  const person = personText(value);
  if (person !== undefined) return person;
  const entries = Object.entries(value).map(([key, part]): [string, unknown] => [key, canonical(part)]);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/** `{id, email?, name?}`: a change of the picture or of the order of keys is no other person. */
function personText(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  const { id, email, name } = value as Record<string, unknown>;
  if (typeof id !== "string" || (email === undefined && name === undefined)) return undefined;
  return [email, name, id].find((text): text is string => typeof text === "string" && text !== "");
}
