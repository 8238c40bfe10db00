/**
 * What a base's replica was when its last lease began.
 *
 * A replica that is on another server, on another timeline of its server, or at an epoch that it has been at before may
 * have lost commits: a standby was promoted that lagged behind, or a backup was put back. What workers remember of its
 * rows is worth nothing then, nor is the cursor up to which the feed has been read.
 */
import type { Db } from "../../context";
import { recordFeedGapOfBase } from "../feeds";

export interface ReplicaState {
  /** Of the server, its timeline and the database. */
  identity: string;
  epoch: number;
}

/** As it was noted last; null before a base's first lease. */
export async function lastReplicaState(db: Db, baseId: string): Promise<ReplicaState | null> {
  const [row] = await db<{ identity: string | null; epoch: string | null }[]>`
    select replica_identity as identity, replica_epoch as epoch from bases where id = ${baseId}`;
  return row?.identity ? { identity: row.identity, epoch: Number(row.epoch) } : null;
}

/** Notes what it is now; where it may have lost commits, a sweep has to find what the feed told of before now. */
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
