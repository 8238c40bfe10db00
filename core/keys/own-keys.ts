/** Decides whether a client's key is the one that its base is synced with. */
import type { Context } from "../context";
import { decryptApiKey } from "../control/bases";
import { LruMap } from "../lru-map";
import { authorizationOf, type KeyHasher, MOST_REMEMBERED } from "./key-hash";

interface BaseWithKey {
  id: string;
  sourceBaseId: string;
  encryptedApiKey: string;
}

/** Returns whether `hash` is that of the base's own key; false if that key cannot be decrypted. */
export type IsOwnKey = (base: BaseWithKey, hash: string) => boolean;

export function ownKeys(ctx: Pick<Context, "secrets">, hashOf: KeyHasher): IsOwnKey {
  const remembered = new LruMap<string, string>(MOST_REMEMBERED);
  return (base, hash) => {
    const named = `${base.id} ${base.encryptedApiKey}`;
    let own = remembered.get(named);
    if (own === undefined) {
      own = ownHash(ctx, hashOf, base);
      remembered.set(named, own);
    }
    return own === hash;
  };
}

function ownHash(ctx: Pick<Context, "secrets">, hashOf: KeyHasher, base: BaseWithKey): string {
  try {
    return hashOf(base.sourceBaseId, authorizationOf(decryptApiKey(ctx, base)));
  } catch {
    return "";
  }
}
