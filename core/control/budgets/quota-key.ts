/** A source base as the quota ledger knows it: whoever's key is used, its quota is one. */
import type { Db } from "../../context";
import { limitsOfKey } from "../../source";

/** A base as its source knows it. */
export interface SourceBaseRef {
  platform: string;
  sourceBaseId: string;
}

export function quotaKeyOf(base: SourceBaseRef): string {
  return `${base.platform}:${base.sourceBaseId}`;
}

/** The key under which the calls of one connected base's syncs are counted: several accounts may have its source base. */
export function ownCallsKey(baseId: string): string {
  return `base:${baseId}`;
}

/** Drops what the ledger has of a source base that nobody has connected any more; its workspace keeps the month's calls. */
export async function forgetUnusedQuota(
  db: Db,
  base: SourceBaseRef & { id: string; workspaceId: string | null },
): Promise<void> {
  const key = quotaKeyOf(base);
  await db.begin(async (tx) => {
    // Where others have the base connected, too, and it comes back, that counts twice: rather too much than too little.
    if (base.workspaceId !== null) await tx`select quota_carry_over(${key}, ${base.workspaceId}, ${base.id})`;
    await tx`delete from quota_kinds where key = ${ownCallsKey(base.id)}`;
    const [used] = await tx`
      select from bases where platform = ${base.platform} and source_base_id = ${base.sourceBaseId} limit 1`;
    if (used) return;
    await tx`select quota_forget(${key}, ${limitsOfKey(key).windowMs})`;
    await tx`delete from accepted_keys where source_base_id = ${base.sourceBaseId}`;
    await tx`delete from quota_minutes where key = ${key}`;
  });
}
