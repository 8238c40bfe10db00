/**
 * Which suspects share a child process.
 *
 * Suspects are many when several workers were killed in a row, and almost all are innocent: so they are not queued up to
 * be tried one at a time, but synced together. A child that dies halves the company that its bases may have next: the
 * one that ends processes is alone after log2(n) deaths, and each death interrupts half as many as the one before.
 */

/** Children of one worker, and those of them that may hold a single suspect for long. */
export const MAX_GROUPS = 4;
const MAX_ALONE = 3;

export interface Group {
  /** The company that each base of the child may have, by base id. */
  limits: Map<string, number>;
}

/**
 * How many bases a suspect may be in a child with, itself included.
 *
 * @param company of the last child that died with it; null: none yet
 * @param capacity bases of the worker: all fit into two children
 */
export function companyLimit(company: number | null, capacity: number): number {
  return company === null ? Math.max(1, Math.ceil(capacity / 2)) : Math.max(1, Math.floor(company / 2));
}

/** @returns the group that takes a base of this limit, `new` for one more, null while there is no room */
export function groupFor<G extends Group>(groups: G[], limit: number): G | "new" | null {
  const isOpen = (group: G) => group.limits.size < Math.min(limit, ...group.limits.values());
  const open = groups.find(isOpen);
  if (open) return open;
  if (groups.length >= MAX_GROUPS) return null;
  const alone = groups.filter((group) => Math.min(...group.limits.values()) === 1).length;
  return limit === 1 && alone >= MAX_ALONE ? null : "new";
}
