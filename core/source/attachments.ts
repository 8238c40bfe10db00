/** Attachments in records: `{id: "att…", url, …}`, in lists, and in values computed from such lists. */
import type { FieldType, SourceField } from "./types";

/** Fields whose cells are computed from other fields' cells, possibly attachments. */
const COMPUTED: ReadonlySet<FieldType> = new Set(["formula", "lookup", "rollup"]);
/** All other declared results are surely not attachments; a lookup of a lookup does not tell. */
const MAY_BE_ATTACHMENT: ReadonlySet<FieldType> = new Set(["attachment", "unknown", ...COMPUTED]);

interface Attachment {
  id: string;
  url: string;
  /** As the source gives them: nothing of this is checked. */
  thumbnails?: Partial<Record<string, { url?: unknown } | null>> | null;
}

/**
 * May cells of the field hold attachments? True for an attachment field, a field of unknown type, and a lookup, rollup
 * or formula whose declared result is one of these, is itself computed, or is not declared.
 */
export function mayHoldAttachments({ type, result }: Pick<SourceField, "type" | "result">): boolean {
  if (COMPUTED.has(type)) return result === undefined || MAY_BE_ATTACHMENT.has(result);
  return MAY_BE_ATTACHMENT.has(type);
}

/** An attachment in a source's answer. The source signs its `url` again for each answer. */
export function isAttachment(value: object): value is Attachment {
  return (
    "id" in value &&
    typeof value.id === "string" &&
    value.id.startsWith("att") &&
    "url" in value &&
    typeof value.url === "string"
  );
}

/**
 * Yields the attachments of a cell, at any depth. @throws RangeError if the cell nests more deeply than the stack
 * allows
 */
export function* attachmentsIn(cell: unknown): Generator<Attachment> {
  if (typeof cell !== "object" || cell === null) return;
  if (isAttachment(cell)) yield cell;
  else for (const part of Object.values(cell)) yield* attachmentsIn(part);
}
