/** Aborts a move before its point of no return: the source serves the account as before. */
import { conflict } from "../../errors";
import { asOnly } from "../../postgres";
import { recordChange } from "../audit";
import { movedTables } from "./catalog";
import type { PlaneContext } from "./control-plane";
import { loadMove, type MoveOptions, requireSameTarget } from "./move-account";
import type { MovingAccount } from "./plan";
import { reopenQuota } from "./quota";
import { labelDatabases } from "./replicas";
import { quotaKeysOf } from "./scope";
import { removeArrived } from "./transfer";

/** @throws BasetideError `conflict` if there is no move, or the target has the account already */
export async function abortMove(
  source: PlaneContext,
  target: PlaneContext,
  account: MovingAccount,
  { onStep }: Pick<MoveOptions, "onStep"> = {},
): Promise<void> {
  const done = await asOnly(source.db, `move account ${account.id}`, async () => {
    const move = await loadMove(source, account.id);
    if (!move) throw conflict("No move of the account was begun");
    await requireSameTarget(target, move.installation);
    if (move.state === "moved") {
      throw conflict(
        "The other control plane has the account already. Run the command without --abort to complete the move; then it can be moved back",
      );
    }
    await labelDatabases(source, account.id);
    await onStep?.("labelled");
    const shapes = await movedTables(target.db);
    await target.db.begin((tx) => removeArrived(tx, shapes, account.id));
    await onStep?.("removed");
    await restart(source, account);
  });
  if (!done) throw conflict("The account is being moved by another command");
}

async function restart({ db, actor }: PlaneContext, { id, email }: MovingAccount): Promise<void> {
  await db.begin(async (tx) => {
    await tx`
      update bases set
        state = case when is_paused then 'paused' when sync_completed_at is null then 'starting' else 'active' end
      where account_id = ${id} and state = 'moving'`;
    await reopenQuota(tx, await quotaKeysOf(tx, id));
    await tx`delete from account_moves where account_id = ${id}`;
    const details = { account: email };
    await recordChange(tx, actor, { accountId: id, action: "account.move_aborted", subject: id, details });
  });
}
