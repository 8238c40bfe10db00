/** Decides whether a lease continues from the replica that the previous lease left. */
import type { Context } from "../../context";
import { lastReplicaState, recordReplicaState } from "../../control/bases";
import { confirmEpoch, type Replica, replicaIdentity } from "../../replica";

/**
 * Compares the replica with its recorded state at the start of the previous lease, and records its current state.
 *
 * @returns false if the replica may have lost commits since then
 * @throws BasetideError `lease_lost` if another lease has started
 */
export async function isContinued(
  { db, log }: Pick<Context, "db" | "log">,
  baseId: string,
  replica: Replica,
  epoch: number,
): Promise<boolean> {
  const [before, identity] = await Promise.all([lastReplicaState(db, baseId), replicaIdentity(replica)]);
  const isSame = before === null || (before.identity === identity && before.epoch < epoch);
  // A lease that has started since would also have recorded a later epoch.
  if (!isSame) await confirmEpoch(replica, epoch);
  if (!isSame)
    log.warn(
      { before, now: { identity, epoch } },
      "the replica may have lost commits; comparing all tables with Airtable",
    );
  await recordReplicaState(db, baseId, { identity, epoch }, !isSame);
  return isSame;
}
