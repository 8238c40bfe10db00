/** Replaces the source's attachment URLs in cells, which expire, by Basetide's own. */

import { isAttachment } from "../source";
import { type AttachmentSigner, attachmentUrl } from "./attachment-link";
import type { ColumnSpec } from "./spec";

/** Returns the record's `cell` with our URL in each of its attachments. Takes any JSON value and never throws. */
type CellWithOwnUrls = (cell: unknown, recordId: string) => unknown;

/** Undefined: the column's attachments keep the source's URLs. @throws Error if there is no key to sign ours with */
export function ownUrlsOf(
  tableId: string,
  { fieldId, attachmentUrls }: ColumnSpec,
  signer: AttachmentSigner | undefined,
): CellWithOwnUrls | undefined {
  if (!attachmentUrls) return undefined;
  if (!signer)
    throw new Error(`Table ${tableId} has Basetide's attachment URLs, but there is no key to sign them`);
  const { prefix } = attachmentUrls;
  return (cell, recordId) => {
    const urlOf = (attachmentId: string) =>
      attachmentUrl(prefix, { tableId, recordId, fieldId, attachmentId }, signer);
    try {
      return withUrls(cell, urlOf);
    } catch (error) {
      // The value is nested deeper than any cell with attachments; its reader reports that.
      if (error instanceof RangeError) return cell;
      throw error;
    }
  };
}

/** Thumbnails are left out: their URLs expire, and we have none of our own for them. */
function withUrls(value: unknown, urlOf: (attachmentId: string) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withUrls(item, urlOf));
  if (isAttachment(value)) {
    const { thumbnails: _, ...attachment } = value as typeof value & { thumbnails?: unknown };
    return { ...attachment, url: urlOf(attachment.id) };
  }
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withUrls(part, urlOf)]));
}
