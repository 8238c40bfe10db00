/**
 * Claims the epoch of a new lease, and decides whether the lease continues from the replica that the previous one left.
 *
 * I5. No two leases have the same epoch, even if the replica has lost the earlier claim: each is greater than the last
 * one that the control plane has recorded, and is recorded before the lease writes. If the control plane has lost that,
 * too (both on one server, or both restored), the replica's own count has moved past it (`advance`, which core/replica
 * installs).
 */
import type { Context } from "../../context";
import { lastReplicaState, recordReplicaState } from "../../control/bases";
import { BasetideError } from "../../errors";
import { claimEpochAbove, type Replica } from "../../replica";

interface LeaseStart {
  epoch: number;
  /** The replica's epoch before. */
  previousEpoch: number;
  /** False if the replica may have lost commits since the previous lease began. */
  isContinued: boolean;
}

/** @throws BasetideError `lease_lost` if another lease has started meanwhile */
export async function claimLease(
  { db, log }: Pick<Context, "db" | "log">,
  baseId: string,
  replica: Replica,
): Promise<LeaseStart> {
  // Read first: the claim that was recorded is older than this one, so a replica that is behind it has lost it.
  const before = await lastReplicaState(db, baseId);
  const { epoch, previousEpoch, identity, hasLost } = await claimEpochAbove(replica, before.epoch);
  const isContinued = before.identity === null || (before.identity === identity && !hasLost);
  if (!isContinued)
    log.warn(
      { before, now: { identity, epoch: previousEpoch } },
      "the replica may have lost commits; comparing all tables with Airtable",
    );
  if (!(await recordReplicaState(db, baseId, { identity, epoch }, !isContinued)))
    throw new BasetideError("lease_lost");
  return { epoch, previousEpoch, isContinued };
}
