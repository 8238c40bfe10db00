/**
 * What a replica is shown of a write that a client has made through the proxy.
 *
 * A base's account may see what the base's own key may read, and nothing else: the writer's answer goes only into
 * replicas whose own key the source has accepted in the last minutes. Guarantees I8 across accounts with one source base.
 */
import { isBasetideError } from "../errors";
import { LruMap } from "../lru-map";
import { type ConnectedBase, isKeyFresh, isSyncing } from "./connected-bases";

/** A base whose key was refused is not read with it again for so long, ms. */
const REFUSED_MS = 5 * 60_000;
const MAX_REFUSED = 2000;

/**
 * `image`: the writer's answer. `own_read`: the records, as the base's own key reads them. `none`: nothing until its next
 * sync, as with an edit in the source itself; nobody is told to wait for it.
 */
export type Share = "image" | "own_read" | "none";

/** @param isWriters the base's own key has written: the source has just accepted it */
export function shareOf(base: ConnectedBase, isWriters: boolean): Share {
  if (isWriters) return "image";
  if (!isSyncing(base)) return "none";
  return isKeyFresh(base) ? "image" : "own_read";
}

/** Bases whose own key the source has just refused: a write does not wait for another refusal. */
export class RefusedBases {
  readonly #until = new LruMap<string, number>(MAX_REFUSED);

  add(base: ConnectedBase): void {
    this.#until.set(nameOf(base), performance.now() + REFUSED_MS);
  }

  has(base: ConnectedBase): boolean {
    return (this.#until.get(nameOf(base)) ?? 0) > performance.now();
  }
}

/** Does the source say that this key may not read the base? */
export function isRefusal(error: unknown): boolean {
  return (["source_key_refused", "source_forbidden", "source_not_found"] as const).some((code) =>
    isBasetideError(error, code),
  );
}

/** With another key it is another matter. */
function nameOf({ id, encryptedApiKey }: ConnectedBase): string {
  return `${id} ${encryptedApiKey}`;
}
