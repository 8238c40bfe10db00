/**
 * Decides which replicas a write waits for: one account's own database server never delays another account's clients.
 *
 * S13. A write waits for hosted replicas, because they are ours. It waits for a replica on a customer's own server only
 * if that account is known to be the writer: the write uses its base's own key, or no other account has connected the
 * source base. Otherwise the records are recorded for repair at once, and read with the base's own key.
 */
import type { ConnectedBase } from "./connected-bases";

/**
 * `awaited`: a read version is taken, and the replica shows the write before the client is answered. `maybe`: the write
 * does not wait for it, but its account may be the client's, which is answered `pending`. `others`: neither.
 */
export type Relation = "awaited" | "maybe" | "others";

/**
 * @param bases all bases that are connected to the source base, including `base`
 * @param isWriters is the write made with a base's own key?
 */
export function relationOf(
  base: ConnectedBase,
  bases: ConnectedBase[],
  isWriters: (base: ConnectedBase) => boolean,
): Relation {
  if (!base.isExternal || isWriters(base)) return "awaited";
  const writers = bases.filter(isWriters);
  // A key that belongs to no base may be any account's: an answer `shown` must not be wrong.
  if (writers.length === 0) return isOneAccounts(bases) ? "awaited" : "maybe";
  return writers.some(({ accountId }) => accountId === base.accountId) ? "maybe" : "others";
}

function isOneAccounts(bases: ConnectedBase[]): boolean {
  return new Set(bases.map(({ accountId }) => accountId)).size <= 1;
}
