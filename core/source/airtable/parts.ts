/**
 * Reads answers part by part: a part that cannot be read counts as absent and is reported, and the rest is read.
 */
import { cutText } from "../../cut-text";
import { BasetideError } from "../../errors";
import { isObject } from "../../json";
import { type AirtableIdKind, isAirtableId } from "./limits";

/** Longest text of an unreadable part that is shown, characters. */
const MAX_SHOWN = 100;

export function textIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns the id of an entry, if it has one of this kind. */
export function idOf(kind: AirtableIdKind, entry: unknown): string | undefined {
  const id = isObject(entry) ? textIn(entry.id) : undefined;
  return id !== undefined && isAirtableId(kind, id) ? id : undefined;
}

/** Returns the start of a value's JSON, of an object or list only what it is. */
export function described(value: unknown): string {
  if (value === undefined) return "missing";
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${cutText(text, MAX_SHOWN)}…` : text;
}

/**
 * Returns the list that an answer consists of.
 *
 * @throws BasetideError `source_bad_answer` if the answer has no such list
 */
export function listIn(answer: unknown, key: string, what: string): unknown[] {
  const list = isObject(answer) ? answer[key] : undefined;
  if (Array.isArray(list)) return list;
  const where = isObject(answer) ? key : "the answer";
  throw badAnswer(what, where, `expected ${isObject(answer) ? "a list" : "an object"}`);
}

export function badAnswer(what: string, where: string, reason: string): BasetideError {
  return new BasetideError(
    "source_bad_answer",
    `Airtable's ${what} has an unexpected form: ${where}: ${reason}`,
  );
}
