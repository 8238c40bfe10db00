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
import type { Base } from "./base-row";
import { type Database, databaseAdminUrl, getDatabase } from "./databases";
import { dropWhole, isUsedByOthers, removeStrays, withDatabaseLocked } from "./drop-database";
import { endBrokenMoves, endMove } from "./end-move";
import { forgetUnusedQuota } from "./quota-key";

type DeleteContext = Pick<Context, "db" | "secrets" | "log">;

/** How long the worker that has the base is given to notice. It can write nothing any more in any case. */
const NOTICE_MS = 5000;

/**
 * Deletes the base and its replica: the whole database when no other base lives there, else its schemas. What lies
 * in a database that the customer hosts stays there.
 */
export async function deleteBase(ctx: DeleteContext, base: Base): Promise<void> {
  const { id, schema } = base.database;
  const [marked] = await ctx.db<{ move_database_id: string | null }[]>`
    update bases set state = 'deleting' where id = ${base.id} returning move_database_id`;
  const database = await getDatabase(ctx.db, id);
  await fence(ctx, database, schema);
  await untilNotHeld(ctx.db, base.id, NOTICE_MS);
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
export async function finishDeletions(ctx: DeleteContext, list: () => Promise<Base[]>): Promise<number> {
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
