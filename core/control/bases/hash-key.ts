/** The key for the hashes of a base's cells. It never changes: hashes would no longer join. */
import { randomBytes } from "node:crypto";
import type { Context } from "../../context";

const KEY_BYTES = 32;

/** Returns a new key, encrypted. */
export function newHashKey({ secrets }: Pick<Context, "secrets">, baseId: string): string {
  return secrets.encrypt(randomBytes(KEY_BYTES).toString("base64url"), keyContext(baseId));
}

/** @throws BasetideError `secret_unreadable` */
export function openHashKey(
  { secrets }: Pick<Context, "secrets">,
  baseId: string,
  encrypted: string,
): string {
  return secrets.decrypt(encrypted, keyContext(baseId));
}

function keyContext(baseId: string): string {
  return `bases.hash_key:${baseId}`;
}
