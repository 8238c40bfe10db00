/**
 * Basetide's own URLs of attachments: `{console}/attachments/{base}/{table}/{record}/{field}/{attachment}?sig=…`.
 *
 * The signature covers all the ids and uses a key of the base. A URL opens one attachment and no other, and a reader
 * of the catalog or of the table cannot forge one. A URL is the same at every read, so the row of a record that has not
 * changed stays as it is.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** 128 bits of HMAC-SHA-256, in base64url: 22 characters. */
const SIGNATURE_LENGTH = 22;

/** The path, below the console's public address, at which the console serves these URLs. */
export const ATTACHMENTS_PATH = "/attachments";

/** An attachment, by the source's ids. For a lookup, the record is the one that looks it up. */
export interface AttachmentRef {
  tableId: string;
  recordId: string;
  fieldId: string;
  attachmentId: string;
}

/** Signs with the key of one base. */
export interface AttachmentSigner {
  /** Differs between keys. */
  keyVersion: number;
  sign(path: string): string;
}

export function createSigner(key: string, keyVersion: number): AttachmentSigner {
  return {
    keyVersion,
    sign: (path) =>
      createHmac("sha256", key).update(`attachment ${path}`).digest("base64url").slice(0, SIGNATURE_LENGTH),
  };
}

/** Returns the common prefix of the URLs of a base's attachments. */
export function attachmentPrefix(consoleUrl: string, baseId: string): string {
  return `${consoleUrl.replace(/\/+$/, "")}${ATTACHMENTS_PATH}/${baseId}`;
}

/** Returns the signed URL of one attachment. */
export function attachmentUrl(prefix: string, attachment: AttachmentRef, signer: AttachmentSigner): string {
  const path = attachmentPath(attachment);
  return `${prefix}/${path}?sig=${signer.sign(path)}`;
}

/** Returns whether `signature` is the base's signature of this attachment. Compares in constant time. */
export function isSignedBy(signer: AttachmentSigner, attachment: AttachmentRef, signature: string): boolean {
  const expected = Buffer.from(signer.sign(attachmentPath(attachment)));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Escapes each id, because ids come from the source: no id can reach into the next path segment. */
function attachmentPath({ tableId, recordId, fieldId, attachmentId }: AttachmentRef): string {
  return [tableId, recordId, fieldId, attachmentId]
    .map((id) => encodeURIComponent(id.toWellFormed()))
    .join("/");
}
