/**
 * Converts Airtable's schema answers to ours: reads the parts that we need, passes the rest through.
 *
 * Airtable adds types and keys without notice, and may omit `options` or set it to null. What cannot be read is reported
 * and does not keep the rest from being read.
 */

import { isObject } from "../../json";
import type {
  FieldType,
  SourceBase,
  SourceField,
  SourceIdentity,
  SourceSchema,
  SourceTable,
  SourceView,
  UnreadableDefinition,
} from "../types";
import { type AirtableIdKind, isAirtableId } from "./limits";
import { badAnswer, described, idOf, listIn, textIn } from "./parts";

/** Airtable's name of a type → ours. Types that are not listed are `unknown`, for example `manualSort`. */
export const FIELD_TYPES: ReadonlyMap<string, FieldType> = new Map([
  ["aiText", "ai_text"],
  ["autoNumber", "autonumber"],
  ["barcode", "barcode"],
  ["button", "button"],
  ["checkbox", "checkbox"],
  ["count", "count"],
  ["createdBy", "created_by"],
  ["createdTime", "created_time"],
  ["currency", "currency"],
  ["date", "date"],
  ["dateTime", "date_time"],
  ["duration", "duration"],
  ["email", "email"],
  ["externalSyncSource", "external_sync_source"],
  ["formula", "formula"],
  ["lastModifiedBy", "last_modified_by"],
  ["lastModifiedTime", "last_modified_time"],
  // The name of `multipleLookupValues` in older documentation.
  ["lookup", "lookup"],
  ["multilineText", "long_text"],
  ["multipleAttachments", "attachment"],
  ["multipleCollaborators", "collaborators"],
  ["multipleLookupValues", "lookup"],
  ["multipleRecordLinks", "links"],
  ["multipleSelects", "multiple_select"],
  ["number", "number"],
  ["percent", "percent"],
  ["phoneNumber", "phone"],
  ["rating", "rating"],
  ["richText", "rich_text"],
  ["rollup", "rollup"],
  ["singleCollaborator", "collaborator"],
  ["singleLineText", "text"],
  ["singleSelect", "single_select"],
  ["url", "url"],
]);

/** A Postgres table has at most 1,600 columns; the source allows 500 fields. */
const MAX_FIELDS = 1500;

const BASES = "list of bases";
const SCHEMA = "schema";

/**
 * Reads a schema part by part.
 *
 * @param known the tables as they were last known. A definition that cannot be read stays as it was: it is not one that
 *   is gone. A list with an entry that has neither an id nor a name may have any of those that are missing in it.
 * @throws BasetideError `source_bad_answer` if it is not a list of tables
 */
export function readSchema(
  answer: unknown,
  { withViews = false, known = [] }: { withViews?: boolean; known?: readonly SourceTable[] } = {},
): SourceSchema {
  const unreadable: UnreadableDefinition[] = [];
  const tables = readEntries(listIn(answer, "tables", SCHEMA), known, {
    kind: "tbl",
    report: (id, label, reason) => unreadable.push({ tableId: id, label: `table ${label}`, reason }),
    read: (raw, id, was) => readTable(raw, id, was, withViews, unreadable),
  });
  return unreadable.length > 0 ? { tables, unreadable } : { tables };
}

interface Entries<Entry> {
  kind: AirtableIdKind;
  report: (id: string | undefined, label: string, reason: string) => void;
  /** Returns undefined for an entry that is skipped; it has reported that. */
  read: (raw: Record<string, unknown>, id: string, was: Entry | undefined) => Entry | undefined;
}

/** Reads the entries of a list, each id once: the first one counts, or the one with the name that is known. */
function readEntries<Entry extends { id: string; name: string }>(
  list: unknown[],
  known: readonly Entry[],
  { kind, report, read }: Entries<Entry>,
): Entry[] {
  const found = new Map<string, Entry | undefined>();
  /** The names of entries that have no id of their own. */
  const strangers: (string | undefined)[] = [];
  const before = new Map(known.map((entry) => [entry.id, entry]));
  const counts = new Map<string, number>();
  for (const [index, raw] of list.entries()) {
    const id = idOf(kind, raw);
    if (id === undefined) continue;
    const isKnown = (at: number) => (list[at] as { name?: unknown }).name === before.get(id)?.name;
    const other = counts.get(id);
    if (other === undefined || (isKnown(index) && !isKnown(other))) counts.set(id, index);
  }
  for (const [index, raw] of list.entries()) {
    const id = idOf(kind, raw);
    if (id !== undefined && isObject(raw) && counts.get(id) === index) {
      found.set(id, read(raw, id, before.get(id)));
      continue;
    }
    strangers.push(isObject(raw) ? textIn(raw.name) : undefined);
    if (id !== undefined) report(undefined, String(index + 1), `the id ${id} occurs twice`);
    else
      report(
        undefined,
        String(index + 1),
        `not an id (${kind}…): ${described(isObject(raw) ? raw.id : raw)}`,
      );
  }
  for (const entry of known) {
    const isStranger = strangers.some((name) => name === undefined || name === entry.name);
    if (isStranger && !found.has(entry.id)) found.set(entry.id, entry);
  }
  return [...found.values()].filter((entry) => entry !== undefined);
}

/** Reads one page of the list of bases. @throws BasetideError `source_bad_answer` */
export function readBases(answer: unknown): { bases: SourceBase[]; offset: string | undefined } {
  const bases = listIn(answer, "bases", BASES).flatMap((raw): SourceBase[] => {
    const id = isObject(raw) ? textIn(raw.id) : undefined;
    if (!isObject(raw) || !id) return [];
    return [{ id, name: textIn(raw.name) ?? id, permission: textIn(raw.permissionLevel) || "none" }];
  });
  const { offset = null } = answer as { offset?: unknown };
  if (offset !== null && typeof offset !== "string") throw badAnswer(BASES, "offset", "expected text");
  return { bases: [...new Map(bases.map((base) => [base.id, base])).values()], offset: offset || undefined };
}

/** Reads the owner of the key. @throws BasetideError `source_bad_answer` without an id */
export function readIdentity(answer: unknown): SourceIdentity {
  const { id, email, scopes } = isObject(answer) ? answer : {};
  if (typeof id !== "string" || id === "") throw badAnswer("identity", "id", "expected text");
  return {
    id,
    email: textIn(email),
    scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : undefined,
  };
}

function readTable(
  raw: Record<string, unknown>,
  id: string,
  was: SourceTable | undefined,
  withViews: boolean,
  unreadable: UnreadableDefinition[],
): SourceTable | undefined {
  const flaws = new Flaws((reason) => unreadable.push({ tableId: id, label: `table ${id}`, reason }));
  const name = flaws.text("name", raw.name, was?.name);
  const fields = readFields(raw.fields, id, was, flaws, unreadable);
  if (name === undefined || fields === undefined) return undefined;
  const views = withViews ? readViews(raw.views) : undefined;
  return {
    id,
    name,
    description: flaws.optional("description", raw.description, was?.description) || undefined,
    primaryFieldId:
      flaws.optional("primaryFieldId", raw.primaryFieldId, was?.primaryFieldId) ?? fields[0]?.id ?? "",
    fields,
    ...(views && { views }),
  };
}

/** A table without fields does not exist at Airtable: its primary field cannot be deleted. */
function readFields(
  raw: unknown,
  tableId: string,
  was: SourceTable | undefined,
  flaws: Flaws,
  unreadable: UnreadableDefinition[],
): SourceField[] | undefined {
  const isList = Array.isArray(raw);
  if (!isList || (raw.length === 0 && was && was.fields.length > 0)) {
    flaws.report(isList ? "it has no fields" : `fields: expected a list, not ${described(raw)}`);
    return was?.fields;
  }
  if (raw.length > MAX_FIELDS) flaws.report(`it has ${raw.length} fields; the first ${MAX_FIELDS} are read`);
  return readEntries(raw.slice(0, MAX_FIELDS), was?.fields ?? [], {
    kind: "fld",
    report: (fieldId, label, reason) =>
      unreadable.push({ tableId, fieldId: fieldId ?? "", label: `field ${label}`, reason }),
    read: (field, id, before) =>
      readField(
        field,
        id,
        before,
        new Flaws((reason) => unreadable.push({ tableId, fieldId: id, label: `field ${id}`, reason })),
      ),
  });
}

/** @returns undefined if it is not known which views there are */
function readViews(raw: unknown): SourceView[] | undefined {
  if (!Array.isArray(raw)) return undefined;
  const views: SourceView[] = [];
  for (const view of raw) {
    const id = isObject(view) ? textIn(view.id) : undefined;
    if (!isObject(view) || !id) return undefined;
    views.push({ id, name: textIn(view.name) ?? id });
  }
  return views;
}

function readField(
  raw: Record<string, unknown>,
  id: string,
  was: SourceField | undefined,
  flaws: Flaws,
): SourceField | undefined {
  const name = flaws.text("name", raw.name, was?.name);
  const sourceType = flaws.text("type", raw.type, was?.sourceType);
  if (name === undefined || sourceType === undefined) return undefined;
  const description = flaws.optional("description", raw.description, was?.description) || undefined;
  // The options of a field that now has another type say nothing about it.
  const like = was?.sourceType === sourceType ? was : undefined;
  const type = typeof raw.type === "string" ? fieldType(sourceType) : was!.type;
  const read = { id, name, type, sourceType, description };
  const given = raw.options ?? undefined;
  if (given !== undefined && !isObject(given)) {
    flaws.report(`options: expected an object, not ${described(given)}`);
    const { result, linkedTableId, choices, options } = like ?? {};
    return {
      ...read,
      result,
      ...(linkedTableId !== undefined && { linkedTableId }),
      ...(choices && { choices }),
      options,
    };
  }
  const linkedTableId = linkedTable(given?.linkedTableId, type, like, flaws);
  return {
    ...read,
    result: resultOf(given?.result, like, flaws),
    ...(linkedTableId !== undefined && { linkedTableId }),
    ...choicesOf(given?.choices, like, flaws),
    options: given,
  };
}

/** Reports what is wrong with one definition, and returns what counts instead. */
class Flaws {
  readonly report: (reason: string) => void;

  constructor(report: (reason: string) => void) {
    this.report = report;
  }

  text(key: string, value: unknown, was: string | undefined): string | undefined {
    if (typeof value === "string") return value;
    this.report(`${key}: expected text, not ${described(value)}`);
    return was;
  }

  /** The same for text that may be absent. */
  optional(key: string, value: unknown, was: string | undefined): string | undefined {
    return value === undefined || value === null ? undefined : this.text(key, value, was);
  }
}

function choicesOf(given: unknown, was: SourceField | undefined, flaws: Flaws): Pick<SourceField, "choices"> {
  if (given === undefined || given === null) return {};
  const names = Array.isArray(given)
    ? given.map((choice) => (isObject(choice) ? textIn(choice.name) : undefined))
    : undefined;
  if (names?.every((name) => name !== undefined)) return names.length > 0 ? { choices: names } : {};
  flaws.report("choices: expected a list of choices with names");
  return was?.choices ? { choices: was.choices } : {};
}

function linkedTable(
  id: unknown,
  type: FieldType,
  was: SourceField | undefined,
  flaws: Flaws,
): string | undefined {
  if (typeof id === "string" && isAirtableId("tbl", id)) return id;
  if (type !== "links") return undefined;
  if (id !== undefined) flaws.report(`linkedTableId: not an id (tbl…): ${described(id)}`);
  return was?.linkedTableId;
}

/** Returns our type for a declared result (`{type, options?}`), which is absent or null if a formula is not valid. */
function resultOf(result: unknown, was: SourceField | undefined, flaws: Flaws): FieldType | undefined {
  if (result === undefined || result === null) return undefined;
  if (isObject(result) && typeof result.type === "string") return fieldType(result.type);
  flaws.report("result: expected an object with a type");
  return was?.result;
}

function fieldType(word: string): FieldType {
  return FIELD_TYPES.get(word) ?? "unknown";
}
