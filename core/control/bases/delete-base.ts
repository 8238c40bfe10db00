/**
 * Deletes a base. It is marked `deleting` first, which ends its syncs; after a crash, a console resumes the
 * deletion within minutes. Each attempt is counted. After an attempt that crashed its process, the next one leaves
 * out the steps that may have caused it, and a deletion that crashed three processes is quarantined. The deletion
 * does not depend on a database that a customer hosts.
 *
 * Nothing is left behind: no database, role or jobs, and no rows of the quota ledger for a source base that no
 * other account has connected.
 */
import { withTimeout } from "../../async";
import type { Context } from "../../context";
import { conflict } from "../../errors";
import { claimEpoch, openReplica, removeReplica, removeWrites } from "../../replica";
import { recordChange } from "../audit";
import { forgetUnusedQuota } from "../budgets";
import { attempt, forgetJobs, forgetTask, untilReleased } from "../jobs";
import {
  type Database,
  databaseAdminUrl,
  dropWhole,
  endBrokenMoves,
  endMove,
  getDatabase,
  isUsedByOthers,
  removeStrays,
  revokeUnusedAgentUsers,
  withDatabaseLocked,
} from "../placement";
import type { Base } from "./base-row";
import { type ManagementContext, openApiKey } from "./bases";
import { removeWebhook } from "./remove-webhook";

type DeleteContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;
/** Without the platforms, a webhook at the source is left to expire. */
type DeleteBaseContext = DeleteContext & Partial<Pick<ManagementContext, "platforms" | "metrics">>;

const QUARANTINED =
  "Three attempts to delete this base crashed the process, so it is not retried automatically. The operator can complete the deletion";
/** How long to try to close a database that a customer hosts; this is a courtesy. */
const CLOSE_EXTERNAL_MS = 2000;

interface DeletionOptions {
  /** Runs in the background: a deletion that is not due is left for later. */
  isBackground?: boolean;
  /** Deletes also a quarantined base, without any request to the source or to a database that the customer hosts. */
  isForced?: boolean;
}

/**
 * Deletes the base and its replica: the whole database if no other base uses it, otherwise its schemas. A replica
 * in a database that the customer hosts stays there.
 *
 * @returns whether it was deleted: in the background, the deletion may not be due
 * @throws BasetideError `conflict` if the deletion is quarantined
 */
export async function deleteBase(
  ctx: DeleteBaseContext,
  base: Base,
  { isBackground = false, isForced = false }: DeletionOptions = {},
): Promise<boolean> {
  const marked = await mark(ctx, base);
  const task = { task: "deletion", subject: base.id } as const;
  if (isForced) await forgetTask(ctx.db, task);
  const done = await attempt(ctx.db, task, !isBackground, (died) =>
    carryOut(ctx, base, marked?.move_database_id ?? null, isForced || died > 0),
  );
  if (done) ctx.log.info({ baseId: base.id }, "base deleted");
  else if (!isBackground) throw conflict(QUARANTINED);
  return done !== null;
}

/** @param isCautious leaves out all optional steps */
async function carryOut(
  ctx: DeleteBaseContext,
  base: Base,
  moveDatabaseId: string | null,
  isCautious: boolean,
): Promise<void> {
  const { id, schema } = base.database;
  const database = await getDatabase(ctx.db, id);
  if (!isCautious) await closeOnce(ctx, base, database);
  await untilReleased(ctx.db, base.id);
  if (!isCautious) await removeWebhookOf(ctx, base);
  if (moveDatabaseId) await endMove(ctx, { id: base.id, schema }, moveDatabaseId);
  await withDatabaseLocked(ctx, database, async (tx) => {
    const isShared = await isUsedByOthers(tx, database.id, base.id);
    if (database.clusterId !== null && isShared)
      await removeReplica(await databaseAdminUrl(ctx, database), schema);
    await tx`delete from bases where id = ${base.id}`;
    if (!isShared) await dropWhole(ctx, tx, database);
  });
  await revokeUnusedAgentUsers(ctx, { databaseId: id });
  await forgetJobs(ctx.db, base.id);
  await forgetUnusedQuota(ctx.db, base);
}

/**
 * Fences the replica once. A database that the customer hosts stays: no SQL is written to it any more, either. It may not
 * answer: the deletion goes on without it.
 */
async function closeOnce(ctx: DeleteBaseContext, base: Base, database: Database): Promise<void> {
  const { schema } = base.database;
  if (database.clusterId !== null) return fence(ctx, database, schema);
  const close = async () => {
    await fence(ctx, database, schema);
    if (base.settings.sqlWrites) await removeWrites({ url: await databaseAdminUrl(ctx, database), schema });
  };
  await withTimeout(
    CLOSE_EXTERNAL_MS,
    () => {},
    close().catch((error: unknown) => ctx.log.debug({ error }, "closing a customer's database failed")),
  );
}

async function removeWebhookOf({ platforms, metrics, ...ctx }: DeleteBaseContext, base: Base): Promise<void> {
  if (!platforms || !metrics) return;
  await removeWebhook({ ...ctx, platforms, metrics }, base, () => openApiKey(ctx, base));
}

/** Marks the base as being deleted. Recorded once, even if a crash makes the deletion start again. */
async function mark(
  ctx: DeleteContext,
  base: Base,
): Promise<{ move_database_id: string | null } | undefined> {
  return ctx.db.begin(async (tx) => {
    const [was] = await tx<{ state: string; move_database_id: string | null }[]>`
      select state, move_database_id from bases where id = ${base.id} for update`;
    if (was?.state === "moving") throw conflict("The base is being moved to another control plane");
    if (was && was.state !== "deleting") {
      await tx`update bases set state = 'deleting' where id = ${base.id}`;
      const details = { name: base.name, source_base: base.sourceBaseId };
      const { accountId, id } = base;
      await recordChange(tx, ctx.actor, { accountId, action: "base.deleted", subject: id, details });
    }
    return was;
  });
}

/**
 * Revokes the current writer's right to write into the schema. A database that is unreachable has no writer either.
 */
export async function fence(ctx: DeleteContext, database: Database, schema: string): Promise<void> {
  await using replica = openReplica({ url: await databaseAdminUrl(ctx, database), schema });
  await claimEpoch(replica).catch((error: unknown) => {
    ctx.log.debug({ error }, "fencing the replica failed");
  });
}

/**
 * Finishes deletions that a crash or an unreachable cluster interrupted, one after the other, if they are due, and
 * drops what broken moves and creations left.
 *
 * @returns bases deleted
 */
export async function finishDeletions(ctx: DeleteBaseContext, list: () => Promise<Base[]>): Promise<number> {
  let finished = 0;
  for (const base of await list()) {
    if (base.state !== "deleting") continue;
    try {
      if (await deleteBase(ctx, base, { isBackground: true })) finished += 1;
    } catch (error) {
      ctx.log.warn({ baseId: base.id, error }, "finishing a deletion failed");
    }
  }
  await endBrokenMoves(ctx);
  await removeStrays(ctx);
  return finished;
}
