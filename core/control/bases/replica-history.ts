/**
 * The state of a base's replica at the start of its last lease.
 *
 * A replica may have lost commits if it is on another server, on another timeline of its server, or at an epoch
 * that it had before: a standby that lagged behind was promoted, or a backup was restored. Workers' caches of its
 * rows are then worthless, and so is the cursor up to which the feed was read.
 */
import type { Db } from "../../context";
import { recordFeedGapOfBase } from "../feeds";

interface ReplicaState {
  /** Of the server, its timeline and the database. */
  identity: string;
  epoch: number;
}

/** Returns the last recorded state; null before a base's first lease. */
export async function lastReplicaState(db: Db, baseId: string): Promise<ReplicaState | null> {
  const [row] = await db<{ identity: string | null; epoch: string | null }[]>`
    select replica_identity as identity, replica_epoch as epoch from bases where id = ${baseId}`;
  return row?.identity ? { identity: row.identity, epoch: Number(row.epoch) } : null;
}

/**
 * Records the current state. If commits may be lost, a sweep must find the changes that the feed reported before
 * now.
 */
export async function recordReplicaState(
  db: Db,
  baseId: string,
  { identity, epoch }: ReplicaState,
  mayHaveLost: boolean,
): Promise<void> {
  await db.begin(async (tx) => {
    await tx`update bases set replica_identity = ${identity}, replica_epoch = ${epoch} where id = ${baseId}`;
    if (mayHaveLost) await recordFeedGapOfBase(tx, baseId);
  });
}
