/** Lists what SQL users have written: what the control plane has, and what waits in the outbox of the replica. */
import { withTimeout } from "../../async";
import type { Context } from "../../context";
import { asBasetideError, type BasetideError } from "../../errors";
import { listQueuedWrites } from "../../replica";
import { type Base, replicaTarget } from "../bases";
import { listWrites, type SqlWrite } from "./awaited";
import type { OperationKind } from "./operations";

/** Longest wait for the replica, ms. */
const OUTBOX_MS = 5000;

/** `queued`: committed in the replica, and not a change set yet. */
export type ListedWrite = Omit<SqlWrite, "state"> & { state: SqlWrite["state"] | "queued" };

/**
 * The newest first.
 *
 * @returns `unread`: why the outbox could not be read, if it could not
 */
export async function listAllWrites(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Base,
  limit: number,
): Promise<{ writes: ListedWrite[]; unread?: BasetideError }> {
  const { sqlWrites, sqlWritesQueued } = base.settings;
  const isQueued = sqlWrites && sqlWritesQueued;
  const queued = async () => listQueuedWrites(await replicaTarget(ctx, base), limit);
  const outbox = isQueued
    ? await withTimeout(OUTBOX_MS, "replica_unavailable", queued()).catch(asBasetideError)
    : [];
  // Read afterwards: one that has become a set meanwhile is in both.
  const stored: ListedWrite[] = await listWrites(ctx, base.id, { limit });
  if (!Array.isArray(outbox)) return { writes: stored, unread: outbox };
  const known = new Set(stored.map(({ set }) => set));
  const waiting = outbox
    .filter(({ set }) => !known.has(set))
    .map((one) => ({
      ...one,
      operation: one.operation as OperationKind,
      state: "queued" as const,
      errorType: "",
      error: "",
    }));
  return { writes: [...waiting, ...stored].slice(0, limit) };
}
