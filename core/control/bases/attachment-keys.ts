/**
 * The key of a base that signs the URLs of its attachments. It is created when URLs are first requested, and stored
 * while the setting is off, so that existing links work until they are revoked.
 */
import { SharedLookup } from "../../async";
import type { Context } from "../../context";
import { type AttachmentSigner, createSigner } from "../../replica";
import { newSecret } from "../../secrets";
import type { Base } from "./base-row";

/** Returns a new key for the base, encrypted. */
export function newAttachmentKey({ secrets }: Pick<Context, "secrets">, baseId: string): string {
  return secrets.encrypt(newSecret(), `bases.attachment_key:${baseId}`);
}

/** A base whose attachments have URLs of ours, and the signer that checks them. */
interface LinkedBase extends Pick<Base, "id" | "platform" | "sourceBaseId" | "selection"> {
  signer: AttachmentSigner;
}

type LinkedRow = Omit<LinkedBase, "signer"> & { encryptedKey: string; keyVersion: number };

/**
 * @returns a function that returns the base with its current signer, null if it has none or does not exist, and throws
 *   BasetideError `secret_unreadable`, `control_unavailable`
 */
export function linkedBases({ db, secrets }: Pick<Context, "db" | "secrets">) {
  const rows = new SharedLookup(async (ids) => {
    const found = await db<LinkedRow[]>`
      select id, platform, source_base_id as "sourceBaseId", selection, encrypted_attachment_key as "encryptedKey",
        attachment_key_version as "keyVersion"
      from bases where id = any (${ids}) and encrypted_attachment_key is not null and state <> 'deleting'`;
    return new Map(found.map((row) => [row.id, row]));
  });
  return async (baseId: string): Promise<LinkedBase | null> => {
    const row = await rows.get(baseId);
    if (!row) return null;
    const { encryptedKey, keyVersion, ...base } = row;
    return {
      ...base,
      signer: createSigner(secrets.decrypt(encryptedKey, `bases.attachment_key:${baseId}`), keyVersion),
    };
  };
}

/** Returns the signer of the base's attachment URLs, if they are on. @throws BasetideError `secret_unreadable` */
export async function attachmentSigner(
  ctx: Pick<Context, "db" | "secrets">,
  baseId: string,
): Promise<AttachmentSigner | undefined> {
  return (await linkedBases(ctx)(baseId))?.signer;
}
