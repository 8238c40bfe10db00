/**
 * Attachments: which tables may hold them, and records without the parts of them that change at every read.
 *
 * The source signs the URLs of an attachment and of its thumbnails anew for each answer, for about two hours. Its
 * id, size, name and type are what tells a changed attachment from an unchanged one.
 */
import type { FieldType, SourceRecord, SourceTable } from "../types";

/** Fields whose cells are computed from other fields' cells, attachments among them. */
const COMPUTED: ReadonlySet<FieldType> = new Set(["formula", "lookup", "rollup"]);
/** Declared results that are surely no attachment are all but these; a lookup of a lookup says nothing. */
const MAY_BE_ATTACHMENT: ReadonlySet<FieldType> = new Set(["attachment", "unknown", ...COMPUTED]);

/**
 * May cells of the table hold attachments? Decided by the schema: it has an attachment field, a field of unknown
 * type, or a lookup, rollup or formula whose declared result is one of these, computed again, or not declared.
 */
export function mayHoldAttachments(table: SourceTable): boolean {
  return table.fields.some(
    ({ type, result }) =>
      type === "attachment" ||
      type === "unknown" ||
      (COMPUTED.has(type) && (result === undefined || MAY_BE_ATTACHMENT.has(result))),
  );
}

/** Does any cell hold an attachment, at whatever depth? */
export function holdsAttachment(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return isAttachment(value) || Object.values(value).some(holdsAttachment);
}

/** A copy of the record in which attachments and their thumbnails have no `url`; all else is kept. */
export function withoutSignedUrls(record: SourceRecord): SourceRecord {
  return { ...record, fields: stripped(record.fields) as Record<string, unknown> };
}

function stripped(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(stripped);
  const entries = Object.entries(value).map(([key, part]) => [key, stripped(part)] as const);
  if (!isAttachment(value)) return Object.fromEntries(entries);
  return Object.fromEntries(
    entries
      .filter(([key]) => key !== "url")
      .map(([key, part]) => [key, key === "thumbnails" ? thumbnailsWithoutUrls(part) : part]),
  );
}

function thumbnailsWithoutUrls(thumbnails: unknown): unknown {
  if (typeof thumbnails !== "object" || thumbnails === null) return thumbnails;
  return Object.entries(thumbnails).map(([size, picture]) => {
    if (typeof picture !== "object" || picture === null) return [size, picture];
    return [size, Object.entries(picture).filter(([key]) => key !== "url")];
  });
}

/** An attachment as the source gives it: `{id: "att…", url, …}`. */
function isAttachment(value: object): boolean {
  return (
    "id" in value &&
    typeof value.id === "string" &&
    value.id.startsWith("att") &&
    "url" in value &&
    typeof value.url === "string"
  );
}
