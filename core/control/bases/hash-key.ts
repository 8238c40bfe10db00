/** The key for the hashes of a base's cells. It never changes: hashes would no longer join. */
import type { Context } from "../../context";
import { newSecret } from "../../secrets";

/** Returns a new key, encrypted. */
export function newHashKey({ secrets }: Pick<Context, "secrets">, baseId: string): string {
  return secrets.encrypt(newSecret(), `bases.hash_key:${baseId}`);
}

/** @throws BasetideError `secret_unreadable` */
export function openHashKey(
  { secrets }: Pick<Context, "secrets">,
  baseId: string,
  encrypted: string,
): string {
  return secrets.decrypt(encrypted, `bases.hash_key:${baseId}`);
}
