/** Keys of the quota ledger. A source base has one quota, whichever API key is used. */

/** Identifies a base at its source. */
export interface SourceBaseRef {
  platform: string;
  sourceBaseId: string;
}

export function quotaKeyOf(base: SourceBaseRef): string {
  return `${base.platform}:${base.sourceBaseId}`;
}

/** The key for counting one connected base's sync calls; several accounts may have connected the same source base. */
export function ownCallsKey(baseId: string): string {
  return `base:${baseId}`;
}

/** When the next month of the source's call caps begins: on the first, UTC. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
}
