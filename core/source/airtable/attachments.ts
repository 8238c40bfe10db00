/**
 * Tells which tables may hold attachments, and removes the parts of attachments that change at every read.
 *
 * The source signs the URLs of an attachment and of its thumbnails again for each answer, for about two hours. Its id,
 * size, name and type tell a changed attachment from an unchanged one.
 */
import { isAttachment, mayHoldAttachments } from "../attachments";
import type { SourceRecord, SourceTable } from "../types";

/** May cells of the table hold attachments? Decided by the schema. */
export function tableMayHoldAttachments(table: SourceTable): boolean {
  return table.fields.some(mayHoldAttachments);
}

/** Does the value hold an attachment, at any depth? */
export function holdsAttachment(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return isAttachment(value) || Object.values(value).some(holdsAttachment);
}

/** Returns a copy of the record in which attachments and their thumbnails have no `url`; the rest is unchanged. */
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
