/**
 * Hands the connection to a replica from one lease to the next lease of the same worker, so that a new lease need not
 * log in.
 *
 * A pool that no lease takes over closes its connections by itself after some seconds. Statements of the earlier lease
 * that are still running carry its epoch and are rejected (I5).
 */
import { openReplica, type Replica, type ReplicaTarget } from "../../replica";
import type { BaseCache } from "../state";

const left = new WeakMap<BaseCache, { target: ReplicaTarget; replica: Replica }>();

/** Leaves the replica open for the next lease. */
export function leaveReplica(cache: BaseCache, target: ReplicaTarget, replica: Replica): void {
  left.set(cache, { target, replica });
}

/** Returns the replica that the previous lease left open, or opens another one if the base has moved. */
export function takeReplica(cache: BaseCache | undefined, target: ReplicaTarget): Replica {
  const before = cache && left.get(cache);
  if (!before) return openReplica(target);
  left.delete(cache);
  if (Bun.deepEquals(before.target, target)) return before.replica;
  void before.replica.close().catch(() => {});
  return openReplica(target);
}
