/**
 * Converts Airtable's schema answers to ours: validates the parts that we read, passes the rest through.
 *
 * Airtable adds types and keys without notice, and may omit `options` or set it to null.
 */
import { z } from "zod";
import { BasetideError } from "../../errors";
import type {
  FieldType,
  SourceBase,
  SourceField,
  SourceIdentity,
  SourceSchema,
  SourceTable,
  SourceView,
} from "../types";
import { type AirtableIdKind, isAirtableId } from "./limits";

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

const name = z.string();
const id = z.string().min(1);
const idOf = (kind: AirtableIdKind) => id.refine((text) => isAirtableId(kind, text), `not an id (${kind}…)`);
/** A list with distinct ids. */
const distinct = <Shape extends z.ZodType<{ id: string }>>(shape: Shape) =>
  z.array(shape).refine((all) => new Set(all.map((one) => one.id)).size === all.length, "an id occurs twice");
const description = z.string().nullish();

const wireField = z.object({
  id: idOf("fld"),
  name,
  type: z.string(),
  description,
  options: z.record(z.string(), z.unknown()).nullish(),
});
const wireTable = z.object({
  id: idOf("tbl"),
  name,
  description,
  primaryFieldId: z.string().nullish(),
  fields: distinct(wireField).max(MAX_FIELDS),
});
const wireSchema = z.object({ tables: distinct(wireTable) });
const wireWithViews = z.object({
  tables: distinct(wireTable.extend({ views: z.array(z.object({ id, name })).nullish() })),
});
const wireBases = z.object({
  bases: z.array(z.object({ id, name, permissionLevel: z.string().nullish() })),
  offset: z.string().nullish(),
});
const wireIdentity = z.object({
  id,
  email: z.string().nullish(),
  scopes: z.array(z.string()).nullish(),
});

/** @throws BasetideError `source_bad_answer`, naming the first part that is not valid */
export function readSchema(answer: unknown, withViews = false): SourceSchema {
  const tables: WireTable[] = withViews
    ? check(wireWithViews, answer, "schema").tables
    : check(wireSchema, answer, "schema").tables;
  return { tables: tables.map(readTable) };
}

/** Reads one page of the list of bases. @throws BasetideError `source_bad_answer` */
export function readBases(answer: unknown): { bases: SourceBase[]; offset: string | undefined } {
  const { bases, offset } = check(wireBases, answer, "list of bases");
  return {
    bases: bases.map((base) => ({
      id: base.id,
      name: base.name,
      permission: base.permissionLevel || "none",
    })),
    offset: offset || undefined,
  };
}

/** Reads the owner of the key. @throws BasetideError `source_bad_answer` */
export function readIdentity(answer: unknown): SourceIdentity {
  const { id: userId, email, scopes } = check(wireIdentity, answer, "identity");
  return { id: userId, email: email ?? undefined, scopes: scopes ?? undefined };
}

type WireTable = z.infer<typeof wireTable> & { views?: SourceView[] | null | undefined };

function readTable(table: WireTable): SourceTable {
  return {
    id: table.id,
    name: table.name,
    description: table.description || undefined,
    primaryFieldId: table.primaryFieldId ?? table.fields[0]?.id ?? "",
    fields: table.fields.map(readField),
    ...(table.views && { views: table.views }),
  };
}

function readField(field: z.infer<typeof wireField>): SourceField {
  const options = field.options ?? undefined;
  return {
    id: field.id,
    name: field.name,
    type: fieldType(field.type),
    sourceType: field.type,
    description: field.description || undefined,
    result: resultType(options?.result),
    ...linkedTable(options?.linkedTableId),
    ...choices(options?.choices),
    options,
  };
}

function choices(given: unknown): Pick<SourceField, "choices"> {
  const names = Array.isArray(given) ? given.map((choice: { name?: unknown } | null) => choice?.name) : [];
  return names.length > 0 && names.every((one) => typeof one === "string") ? { choices: names } : {};
}

function linkedTable(id: unknown): Pick<SourceField, "linkedTableId"> {
  return typeof id === "string" && isAirtableId("tbl", id) ? { linkedTableId: id } : {};
}

/** Returns our type for a declared result (`{type, options?}`), which is absent or null if a formula is not valid. */
function resultType(result: unknown): FieldType | undefined {
  if (typeof result !== "object" || result === null || !("type" in result)) return undefined;
  return typeof result.type === "string" ? fieldType(result.type) : undefined;
}

function fieldType(word: string): FieldType {
  return FIELD_TYPES.get(word) ?? "unknown";
}

/** @throws BasetideError `source_bad_answer`, naming the first part that is not valid */
export function check<Out>(shape: z.ZodType<Out>, answer: unknown, what: string): Out {
  const result = shape.safeParse(answer);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new BasetideError(
    "source_bad_answer",
    `Airtable's ${what} has an unexpected form: ${issue?.path.join(".") || "the answer"}: ${issue?.message}`,
  );
}
