/**
 * Decides which suspects share a child process.
 *
 * After several workers were killed in a row there are many suspects, almost all of them innocent: so they are not
 * tried one at a time, but synced together. When a child dies, its bases may have only half as much company next time:
 * the base that kills processes is alone after log2(n) crashes, and each crash interrupts half as many bases as the one
 * before.
 */

/** Children of one worker, and how many of them may hold a single suspect for long. */
export const MAX_GROUPS = 4;
const MAX_ALONE = 3;

export interface Group {
  /** Maximum company of each base of the child, by base id. */
  limits: Map<string, number>;
}

/**
 * Returns how many bases a suspect may share a child with, itself included.
 *
 * @param company of the last child that died with it; null: none yet
 * @param capacity bases of the worker: all fit into two children
 */
export function companyLimit(company: number | null, capacity: number): number {
  return company === null ? Math.max(1, Math.ceil(capacity / 2)) : Math.max(1, Math.floor(company / 2));
}

/** @returns the group for a base with this limit, `new` for an additional one, null if there is no room */
export function groupFor<G extends Group>(groups: G[], limit: number): G | "new" | null {
  const isOpen = (group: G) => group.limits.size < Math.min(limit, ...group.limits.values());
  const open = groups.find(isOpen);
  if (open) return open;
  if (groups.length >= MAX_GROUPS) return null;
  const alone = groups.filter((group) => Math.min(...group.limits.values()) === 1).length;
  return limit === 1 && alone >= MAX_ALONE ? null : "new";
}
