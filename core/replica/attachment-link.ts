/**
 * Our URLs of attachments: `{console}/attachments/{base}/{table}/{record}/{field}/{attachment}?sig=…`.
 *
 * The signature is over all the ids, by a key of the base: who has one such URL can open that attachment and no other,
 * and no reader of the catalog or of the table can make one. Nothing in it changes from one read to the next, so the
 * row of a record that has not changed stays as it is.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

/** 128 bits of HMAC-SHA-256, in base64url: 22 characters. */
const SIGNATURE_LENGTH = 22;

/** Where the console answers them, below its public address. */
export const ATTACHMENTS_PATH = "/attachments";

/** Which attachment, by the source's ids: a lookup's is that of the record that looks it up. */
export interface AttachmentRef {
  tableId: string;
  recordId: string;
  fieldId: string;
  attachmentId: string;
}

/** Signs with the key of one base. */
export interface AttachmentSigner {
  /** Another one for another key. */
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

/** What the URLs of a base's attachments begin with. */
export function attachmentPrefix(consoleUrl: string, baseId: string): string {
  return `${consoleUrl.replace(/\/+$/, "")}${ATTACHMENTS_PATH}/${baseId}`;
}

/** The URL of one attachment, signed. */
export function attachmentUrl(prefix: string, attachment: AttachmentRef, signer: AttachmentSigner): string {
  const path = attachmentPath(attachment);
  return `${prefix}/${path}?sig=${signer.sign(path)}`;
}

/** Is it the base's own signature of this very place? Takes as long for a wrong one as for the right one. */
export function isSignedBy(signer: AttachmentSigner, attachment: AttachmentRef, signature: string): boolean {
  const expected = Buffer.from(signer.sign(attachmentPath(attachment)));
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** The ids are the source's word: whatever they are made of, none reaches into the next. */
function attachmentPath({ tableId, recordId, fieldId, attachmentId }: AttachmentRef): string {
  return [tableId, recordId, fieldId, attachmentId]
    .map((id) => encodeURIComponent(id.toWellFormed()))
    .join("/");
}
