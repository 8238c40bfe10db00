/** Cells whose attachments are reached by URLs of ours, in place of the source's, which end. */

import { isAttachment } from "../source";
import { type AttachmentSigner, attachmentUrl } from "./attachment-link";
import type { ColumnSpec } from "./spec";

/** `cell` of the record, with our URL in each of its attachments. Takes any JSON value and never throws. */
export type CellWithOwnUrls = (cell: unknown, recordId: string) => unknown;

/** Undefined: the column's attachments have the source's URLs. @throws Error where there is no key for ours */
export function ownUrlsOf(
  tableId: string,
  { fieldId, attachmentUrls }: ColumnSpec,
  signer: AttachmentSigner | undefined,
): CellWithOwnUrls | undefined {
  if (!attachmentUrls) return undefined;
  if (!signer)
    throw new Error(`Table ${tableId} has attachment URLs of ours, and there is no key to sign them`);
  const { prefix } = attachmentUrls;
  return (cell, recordId) => {
    const urlOf = (attachmentId: string) =>
      attachmentUrl(prefix, { tableId, recordId, fieldId, attachmentId }, signer);
    try {
      return withUrls(cell, urlOf);
    } catch (error) {
      // It nests deeper than any cell with attachments; its reader says so.
      if (error instanceof RangeError) return cell;
      throw error;
    }
  };
}

/** Thumbnails are left out: their URLs end, and there are none of ours for them. */
function withUrls(value: unknown, urlOf: (attachmentId: string) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withUrls(item, urlOf));
  if (isAttachment(value)) {
    const { thumbnails: _, ...attachment } = value as typeof value & { thumbnails?: unknown };
    return { ...attachment, url: urlOf(attachment.id) };
  }
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withUrls(part, urlOf)]));
}
