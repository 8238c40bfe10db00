/** Attachments as records hold them: `{id: "att…", url, …}`, in lists, and in whatever is computed from such lists. */
import type { FieldType, SourceField } from "./types";

/** Fields whose cells are computed from other fields' cells, attachments among them. */
const COMPUTED: ReadonlySet<FieldType> = new Set(["formula", "lookup", "rollup"]);
/** Declared results that are surely no attachment are all but these; a lookup of a lookup says nothing. */
const MAY_BE_ATTACHMENT: ReadonlySet<FieldType> = new Set(["attachment", "unknown", ...COMPUTED]);

export interface Attachment {
  id: string;
  url: string;
}

/**
 * May cells of the field hold attachments? It is an attachment field, one of unknown type, or a lookup, rollup or
 * formula whose declared result is one of these, computed again, or not declared.
 */
export function mayHoldAttachments({ type, result }: Pick<SourceField, "type" | "result">): boolean {
  if (COMPUTED.has(type)) return result === undefined || MAY_BE_ATTACHMENT.has(result);
  return MAY_BE_ATTACHMENT.has(type);
}

/** An attachment as the source gives it, whose `url` it signs anew for each answer. */
export function isAttachment(value: object): value is Attachment {
  return (
    "id" in value &&
    typeof value.id === "string" &&
    value.id.startsWith("att") &&
    "url" in value &&
    typeof value.url === "string"
  );
}

/** The attachments of a cell, at whatever depth. @throws RangeError for one that nests deeper than there is stack */
export function* attachmentsIn(cell: unknown): Generator<Attachment> {
  if (typeof cell !== "object" || cell === null) return;
  if (isAttachment(cell)) yield cell;
  else for (const part of Object.values(cell)) yield* attachmentsIn(part);
}
