/** The end of a move: the target begins to serve the account. */
import { conflict } from "../../errors";
import { recordChange } from "../audit";
import { recordFeedGapOfBase } from "../feeds";
import type { PlaneContext } from "./control-plane";
import type { MovingAccount } from "./plan";
import { reopenQuota } from "./quota";
import { quotaKeysOf } from "./scope";

/** @throws BasetideError `conflict` if the target does not have the account, because its database was restored */
export async function requireArrived(
  { db }: PlaneContext,
  accountId: string,
  sourceInstallation: string,
): Promise<void> {
  const [arrived] = await db`
    select from accounts as a where id = ${accountId} and not exists (
      select from account_moves as m where m.account_id = a.id and m.installation <> ${sourceInstallation})`;
  if (arrived) return;
  throw conflict(
    "The other control plane does not have the account's rows, which the move has stored there. Was its database restored from a backup? Restore one of after the move",
  );
}

/**
 * Lets the target serve the account's bases. Nothing changes if it does already.
 *
 * What the source had under way is found again: a live base reads its feed through a webhook that calls the target, and
 * compares everything (its gap); any other base is compared at once. A console of the target installs SQL writes.
 */
export async function activate(
  { db, actor }: PlaneContext,
  { id, email }: MovingAccount,
  sourceInstallation: string,
): Promise<void> {
  await db.begin(async (tx) => {
    const [arrival] = await tx`
      delete from account_moves where account_id = ${id} and direction = 'in' returning account_id`;
    if (!arrival) return;
    const bases = await tx<{ id: string }[]>`
      update bases set
        state = case when is_paused then 'paused' when sync_completed_at is null then 'starting' else 'active' end,
        -- The triggers of the others connect to the source's proxy.
        sql_writes_installed = case when sql_writes_queued then sql_writes_installed end,
        resync_requested_at = case when is_paused then resync_requested_at else now() end
      where account_id = ${id} and state = 'moving' returning id`;
    for (const base of bases) await recordFeedGapOfBase(tx, base.id);
    await reopenQuota(tx, await quotaKeysOf(tx, id));
    await tx`
      delete from moved_bases as m using bases as b
      where b.account_id = ${id} and b.platform = m.platform and b.source_base_id = m.source_base_id`;
    const details = { account: email, from: sourceInstallation };
    await recordChange(tx, actor, { accountId: id, action: "account.moved_in", subject: id, details });
  });
}
