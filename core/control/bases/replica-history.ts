/**
 * The state of a base's replica at the start of its last lease.
 *
 * A replica may have lost commits if it is on another server, on another timeline of its server, or behind the
 * recorded epoch: a standby that lagged behind was promoted, or a backup was restored. Workers' caches of its
 * rows are then worthless, and so is the cursor up to which the feed was read.
 */
import type { Db } from "../../context";
import type { ReplicaState } from "../../sync/host";
import { recordFeedGapOfBase } from "../feeds";

/** Returns the last recorded state. */
export async function lastReplicaState(db: Db, baseId: string): Promise<ReplicaState> {
  const [row] = await db<{ identity: string | null; epoch: string | null }[]>`
    select replica_identity as identity, replica_epoch as epoch from bases where id = ${baseId}`;
  return { identity: row?.identity ?? null, epoch: Number(row?.epoch ?? 0) };
}

/**
 * Records the current state. If commits may be lost, a sweep must find the changes that the feed reported before
 * now.
 *
 * @returns false, and records nothing, if a lease with this epoch or a later one has been recorded, or the base is gone
 */
export function recordReplicaState(
  db: Db,
  baseId: string,
  { identity, epoch }: ReplicaState,
  mayHaveLost: boolean,
): Promise<boolean> {
  return db.begin(async (tx) => {
    const [recorded] = await tx`
      update bases set replica_identity = ${identity}, replica_epoch = ${epoch}
      where id = ${baseId} and coalesce(replica_epoch, 0) < ${epoch} returning id`;
    if (recorded && mayHaveLost) await recordFeedGapOfBase(tx, baseId);
    return recorded !== undefined;
  });
}
