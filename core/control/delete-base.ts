/**
 * Taking a base away. It is marked `deleting` first, which ends its syncs; a crash after that is picked up by
 * the next start of a console.
 *
 * Nothing is left behind: neither database, role, jobs nor what the quota ledger has of a source base that nobody
 * else has connected.
 */
import type { Context } from "../context";
import { forgetJobs, untilNotHeld } from "../queue/jobs-of-base";
import { claimEpoch, openReplica, removeReplica } from "../replica";
import { noteChange } from "./audit";
import type { Base } from "./base-row";
import { type ManagementContext, openApiKey } from "./bases";
import { type Database, databaseAdminUrl, getDatabase } from "./databases";
import { dropWhole, isUsedByOthers, removeStrays, withDatabaseLocked } from "./drop-database";
import { endBrokenMoves, endMove } from "./end-move";
import { forgetUnusedQuota } from "./quota-key";
import { removeHook } from "./remove-hook";

type DeleteContext = Pick<Context, "db" | "secrets" | "log" | "actor">;
/** Where the platforms are not given, a hook at the source ends by itself. */
type DeleteBaseContext = DeleteContext & Partial<Pick<ManagementContext, "platforms" | "metrics">>;

/** How long the worker that has the base is given to notice. It can write nothing any more in any case. */
const NOTICE_MS = 5000;

/**
 * Deletes the base and its replica: the whole database when no other base lives there, else its schemas. What lies
 * in a database that the customer hosts stays there.
 */
export async function deleteBase(ctx: DeleteBaseContext, base: Base): Promise<void> {
  const { id, schema } = base.database;
  const marked = await mark(ctx, base);
  const database = await getDatabase(ctx.db, id);
  await fence(ctx, database, schema);
  await untilNotHeld(ctx.db, base.id, NOTICE_MS);
  await removeHookOf(ctx, base);
  if (marked?.move_database_id) await endMove(ctx, { id: base.id, schema }, marked.move_database_id);
  await withDatabaseLocked(ctx, database, async (tx) => {
    const isShared = await isUsedByOthers(tx, database.id, base.id);
    if (database.clusterId !== null && isShared)
      await removeReplica(await databaseAdminUrl(ctx, database), schema);
    await tx`delete from bases where id = ${base.id}`;
    if (!isShared) await dropWhole(ctx, tx, database);
  });
  await forgetJobs(ctx.db, base.id);
  await forgetUnusedQuota(ctx.db, base);
  ctx.log.info({ baseId: base.id }, "base deleted");
}

async function removeHookOf({ platforms, metrics, ...ctx }: DeleteBaseContext, base: Base): Promise<void> {
  if (!platforms || !metrics) return;
  await removeHook({ ...ctx, platforms, metrics }, base, () => openApiKey(ctx, base));
}

/** The base is going from now on. Told of once, also where a crash has the deletion begin again. */
async function mark(
  ctx: DeleteContext,
  base: Base,
): Promise<{ move_database_id: string | null } | undefined> {
  return ctx.db.begin(async (tx) => {
    const [was] = await tx<{ state: string; move_database_id: string | null }[]>`
      select state, move_database_id from bases where id = ${base.id} for update`;
    if (was && was.state !== "deleting") {
      await tx`update bases set state = 'deleting' where id = ${base.id}`;
      const details = { name: base.name, source_base: base.sourceBaseId };
      const { accountId, id } = base;
      await noteChange(tx, ctx.actor, { accountId, action: "base.deleted", subject: id, details });
    }
    return was;
  });
}

/** Ends the right to write of whoever syncs into the schema. Into what cannot be reached nobody does. */
export async function fence(ctx: DeleteContext, database: Database, schema: string): Promise<void> {
  const replica = openReplica({ url: await databaseAdminUrl(ctx, database), schema });
  try {
    await claimEpoch(replica);
  } catch (error) {
    ctx.log.debug({ error }, "replica not fenced");
  } finally {
    await replica.close();
  }
}

/**
 * Ends the deletions that a crash or a lost cluster interrupted, and drops what broken moves and creations left.
 *
 * @returns bases deleted
 */
export async function finishDeletions(ctx: DeleteBaseContext, list: () => Promise<Base[]>): Promise<number> {
  let finished = 0;
  for (const base of await list()) {
    if (base.state !== "deleting") continue;
    try {
      await deleteBase(ctx, base);
      finished += 1;
    } catch (error) {
      ctx.log.warn({ baseId: base.id, error }, "deletion not finished");
    }
  }
  await endBrokenMoves(ctx);
  await removeStrays(ctx);
  return finished;
}
