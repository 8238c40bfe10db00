/**
 * The replica of a lease: claims its epoch, decides whether the lease continues from what the previous one left, and
 * hands the connection from one lease to the next of the same worker, so that a new lease need not log in. With it, the
 * lease hands over how it left the replica: what has been applied need not be applied again each minute.
 *
 * A pool that no lease takes over closes its connections by itself after some seconds. Statements of the earlier lease
 * that are still running carry its epoch and are rejected.
 *
 * I5. No two leases have the same epoch, even if the replica has lost the earlier claim: each is greater than the last
 * one that the control plane has recorded, and is recorded before the lease writes. If the control plane has lost that,
 * too (both on one server, or both restored), the replica's own count has moved past it (`advance`, which core/replica
 * installs).
 */

import type { Context } from "../../context";
import { type IndexSetting, lastReplicaState, recordReplicaState } from "../../control/bases";
import { BasetideError } from "../../errors";
import { claimEpochAbove, openReplica, type Replica, type ReplicaTarget } from "../../replica";
import type { BaseCache } from "../state";
import type { AppliedFeatures } from "./apply-optional-features";

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

/**
 * For this long, a lease relies on what an earlier one has applied, ms. Applying it again also trims the history,
 * removes old names, and restores views and indexes that somebody has dropped.
 */
const APPLIED_MS = 600_000;

/** What a lease has applied to a replica whose shape has not changed since. */
export interface AppliedSettings {
  features: AppliedFeatures;
  indexes: IndexSetting[];
  /** performance.now() */
  at: number;
}

interface Left {
  target: ReplicaTarget;
  replica: Replica;
  applied: AppliedSettings | undefined;
}

const left = new WeakMap<BaseCache, Left>();

/** Leaves the replica open for the next lease. */
export function leaveReplica(
  cache: BaseCache,
  target: ReplicaTarget,
  replica: Replica,
  applied?: AppliedSettings,
): void {
  left.set(cache, { target, replica, applied });
}

/** Returns the replica that the previous lease left open, or opens another one if the base has moved. */
export function takeReplica(
  cache: BaseCache | undefined,
  target: ReplicaTarget,
): { replica: Replica; applied: AppliedSettings | undefined } {
  const before = cache && left.get(cache);
  if (!before) return { replica: openReplica(target), applied: undefined };
  left.delete(cache);
  if (Bun.deepEquals(before.target, target)) {
    const isRecent = before.applied && performance.now() - before.applied.at < APPLIED_MS;
    return { replica: before.replica, applied: isRecent ? before.applied : undefined };
  }
  void before.replica.close().catch(() => {});
  return { replica: openReplica(target), applied: undefined };
}
