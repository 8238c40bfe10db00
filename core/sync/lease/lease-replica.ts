/**
 * The replica of a lease: claims its epoch, and decides whether the lease continues from what the previous one left.
 *
 * I5. No two leases have the same epoch, even if the replica has lost the earlier claim: each is greater than the last
 * one that the control plane has recorded, and is recorded before the lease writes. If the control plane has lost that,
 * too (both on one server, or both restored), the replica's own count has moved past it (`advance`, which core/replica
 * installs).
 */

import type { Context } from "../../context";
import { BasetideError } from "../../errors";
import { claimEpochAbove, type Replica } from "../../replica";
import type { Host } from "../host";
import type { BaseCache } from "../state";

interface LeaseStart {
  epoch: number;
  /** The replica's epoch before. */
  previousEpoch: number;
  /** False if the replica may have lost commits since the previous lease began. */
  isContinued: boolean;
}

/**
 * @param known the lease that this worker knows of
 * @throws BasetideError `lease_lost` if another lease has started meanwhile
 */
export async function claimLease(
  { host, log }: Pick<Context, "log"> & { host: Pick<Host, "replicaState" | "recordReplicaState"> },
  baseId: string,
  replica: Replica,
  known?: Pick<BaseCache, "epoch" | "renewals">,
): Promise<LeaseStart> {
  // Read first: the claim that was recorded is older than this one, so a replica that is behind it has lost it.
  const before = await host.replicaState(baseId);
  const claim = await claimEpochAbove(replica, before.epoch);
  const { epoch, previousEpoch, previousRenewals, identity } = claim;
  const hasLostRenewals = known?.epoch === previousEpoch && known.renewals !== previousRenewals;
  const hasLost = before.identity !== null && (before.identity !== identity || claim.hasLost);
  const isContinued = !hasLost && !hasLostRenewals;
  if (!isContinued)
    log.warn(
      { before, now: { identity, epoch: previousEpoch } },
      "the replica may have lost commits; comparing all tables with Airtable",
    );
  if (!(await host.recordReplicaState(baseId, { identity, epoch }, !isContinued)))
    throw new BasetideError("lease_lost");
  return { epoch, previousEpoch, isContinued };
}
