/**
 * Identifies an API key without storing it: an HMAC of the `Authorization` header, one per base, keyed with SECRET_KEY.
 */
import { createHmac } from "node:crypto";
import { LruMap } from "../lru-map";
import { loadSecretKeys } from "../secrets";

/** Hashes that are remembered, so that a client's next request does not pay for its own again. */
const MAX_REMEMBERED = 5000;
/** Longer headers are hashed each time; remembering them would let strangers fill the memory. */
const MAX_REMEMBERED_LENGTH = 512;
const PURPOSE = "accepted keys";

/** @returns the name of a key for one base; the same key has another name for another base */
export type KeyHasher = (sourceBaseId: string, authorization: string) => string;

export function keyHasher(config: Parameters<typeof loadSecretKeys>[0]): KeyHasher {
  const secret = createHmac("sha256", Buffer.from(loadSecretKeys(config)[0], "base64"))
    .update(PURPOSE)
    .digest();
  const remembered = new LruMap<string, string>(MAX_REMEMBERED);
  return (sourceBaseId, authorization) => {
    const named = `${sourceBaseId}\n${authorization}`;
    const known = remembered.get(named);
    if (known !== undefined) return known;
    const hash = createHmac("sha256", secret).update(named).digest("base64url");
    if (authorization.length <= MAX_REMEMBERED_LENGTH) remembered.set(named, hash);
    return hash;
  };
}

/** The header that a client with this key sends. */
export function authorizationOf(apiKey: string): string {
  return `Bearer ${apiKey}`;
}
