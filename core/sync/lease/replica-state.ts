/** Whether a lease goes on from the replica that the last one left. */
import type { Context } from "../../context";
import { lastReplicaState, recordReplicaState } from "../../control/bases";
import { confirmEpoch, type Replica, replicaIdentity } from "../../replica";

/**
 * Compares the replica with what it was when the last lease began, and notes what it is.
 *
 * @returns false where it may have lost commits since
 * @throws BasetideError `lease_lost` where another lease has begun
 */
export async function isContinued(
  { db, log }: Pick<Context, "db" | "log">,
  baseId: string,
  replica: Replica,
  epoch: number,
): Promise<boolean> {
  const [before, identity] = await Promise.all([lastReplicaState(db, baseId), replicaIdentity(replica)]);
  const isSame = before === null || (before.identity === identity && before.epoch < epoch);
  // A lease that has begun since would have noted a later epoch, too.
  if (!isSame) await confirmEpoch(replica, epoch);
  if (!isSame)
    log.warn({ before, now: { identity, epoch } }, "the replica may have lost commits: all is compared");
  await recordReplicaState(db, baseId, { identity, epoch }, !isSame);
  return isSame;
}
