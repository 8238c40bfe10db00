/**
 * Identifies an API key without storing it: an HMAC of the `Authorization` header, keyed with SECRET_KEY, different
 * for each base.
 */
import { createHmac } from "node:crypto";
import { LruMap } from "../lru-map";
import { loadSecretKeys } from "../secrets";

/** Keys, bases or networks of which a process remembers something: anyone can send it others. */
export const MOST_REMEMBERED = 20_000;
/** Longer headers are not cached, because unknown clients could fill the memory with them. */
const MAX_REMEMBERED_LENGTH = 512;
const PURPOSE = "accepted keys";

/** Returns the hash of a key for one base; it differs between bases. */
export type KeyHasher = (sourceBaseId: string, authorization: string) => string;

export function keyHasher(config: Parameters<typeof loadSecretKeys>[0]): KeyHasher {
  const secret = createHmac("sha256", Buffer.from(loadSecretKeys(config)[0], "base64"))
    .update(PURPOSE)
    .digest();
  // A client's later requests need no HMAC.
  const remembered = new LruMap<string, string>(MOST_REMEMBERED);
  return (sourceBaseId, authorization) => {
    const named = `${sourceBaseId}\n${authorization}`;
    const known = remembered.get(named);
    if (known !== undefined) return known;
    const hash = createHmac("sha256", secret).update(named).digest("base64url");
    if (authorization.length <= MAX_REMEMBERED_LENGTH) remembered.set(named, hash);
    return hash;
  };
}

/** Returns the `Authorization` header that a client with this key sends. */
export function authorizationOf(apiKey: string): string {
  return `Bearer ${apiKey}`;
}
