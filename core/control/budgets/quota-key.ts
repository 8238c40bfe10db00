/** Removes what the quota ledger has of a base. */
import type { Db } from "../../context";
import { ownCallsKey, quotaKeyOf, type SourceBaseRef } from "../../source";

/** Deletes the ledger's rows of a source base that is no longer connected; its workspace keeps the month's calls. */
export async function forgetUnusedQuota(
  db: Db,
  base: SourceBaseRef & { id: string; workspaceId: string | null },
): Promise<void> {
  const key = quotaKeyOf(base);
  await db.begin(async (tx) => {
    // If other accounts have the base connected, and this one connects it again, it counts twice: too high rather
    // than too low.
    if (base.workspaceId !== null) await tx`select quota_carry_over(${key}, ${base.workspaceId}, ${base.id})`;
    await tx`delete from quota_kinds where key = ${ownCallsKey(base.id)}`;
    const [used] = await tx`
      select from bases where platform = ${base.platform} and source_base_id = ${base.sourceBaseId} limit 1`;
    if (used) return;
    await tx`select quota_forget(${key})`;
    await tx`delete from accepted_keys where source_base_id = ${base.sourceBaseId}`;
    await tx`delete from quota_minutes where key = ${key}`;
  });
}
