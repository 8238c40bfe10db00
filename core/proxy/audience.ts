/**
 * Decides what a replica shows of a write that a client made through the proxy.
 *
 * A base's account may see what the base's own key may read, and nothing else: the writer's answer goes only into
 * replicas whose own key the source has accepted within the last minutes. Guarantees I8 across accounts that have
 * connected the same source base.
 */
import { isBasetideError } from "../errors";
import { LruMap } from "../lru-map";
import { type ConnectedBase, isKeyFresh, isSyncing } from "./connected-bases";

/** How long a base is not read with its own key after the source refused that key, ms. */
const REFUSED_MS = 5 * 60_000;
const MAX_REFUSED = 2000;

/**
 * `image`: the writer's answer. `own_read`: the records, as the base's own key reads them. `none`: nothing until the
 * base's next sync, as with an edit in the source itself; no client waits for it.
 */
export type Share = "image" | "own_read" | "none";

/** @param isWriters true if the base's own key made the write: the source has just accepted it */
export function shareOf(base: ConnectedBase, isWriters: boolean): Share {
  if (isWriters) return "image";
  if (!isSyncing(base)) return "none";
  return isKeyFresh(base) ? "image" : "own_read";
}

/** Bases whose own key the source has just refused. A write does not wait for another refusal. */
export class RefusedBases {
  readonly #until = new LruMap<string, number>(MAX_REFUSED);

  add(base: ConnectedBase): void {
    this.#until.set(nameOf(base), performance.now() + REFUSED_MS);
  }

  has(base: ConnectedBase): boolean {
    return (this.#until.get(nameOf(base)) ?? 0) > performance.now();
  }
}

/** Does the error say that the key may not read the base? */
export function isRefusal(error: unknown): boolean {
  return (["source_key_refused", "source_forbidden", "source_not_found"] as const).some((code) =>
    isBasetideError(error, code),
  );
}

/** The name includes the key: a refusal of one key says nothing about another. */
function nameOf({ id, encryptedApiKey }: ConnectedBase): string {
  return `${id} ${encryptedApiKey}`;
}
