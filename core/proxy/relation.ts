/**
 * Whom a write waits for: one account's own database server never delays the clients of another.
 *
 * S13. A hosted replica is ours, and is waited for. One on a customer's own server is waited for only where its account
 * is known to write: with its base's own key, or because no other account has connected the source base. Elsewhere its
 * records go to the durable repair at once, which reads them with the base's own key.
 */
import type { ConnectedBase } from "./connected-bases";

/**
 * `awaited`: its read version is taken, and its replica is shown the write, before the client is answered. `maybe`: it is not
 * waited for, but its account may be the client's, who is told `pending`. `others`: neither.
 */
export type Relation = "awaited" | "maybe" | "others";

/**
 * @param bases all that have connected the source base, `base` among them
 * @param isWriters is it a base's own key that writes?
 */
export function relationOf(
  base: ConnectedBase,
  bases: ConnectedBase[],
  isWriters: (base: ConnectedBase) => boolean,
): Relation {
  if (!base.isExternal || isWriters(base)) return "awaited";
  const writers = bases.filter(isWriters);
  // A key of no base may be anybody's: who is told "shown" must not be wrong.
  if (writers.length === 0) return isOneAccounts(bases) ? "awaited" : "maybe";
  return writers.some(({ accountId }) => accountId === base.accountId) ? "maybe" : "others";
}

function isOneAccounts(bases: ConnectedBase[]): boolean {
  return new Set(bases.map(({ accountId }) => accountId)).size <= 1;
}
