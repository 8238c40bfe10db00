/**
 * Taking a base away. It is marked `deleting` first, which ends its syncs; a crash after that is picked up by
 * the next start of a console.
 */
import type postgres from "postgres";
import type { Context } from "../context";
import { dropDatabase, removeReplica } from "../replica";
import type { Base } from "./base-row";
import { clusterAdminUrl } from "./clusters";
import { type Database, databaseAdminUrl, getDatabase } from "./databases";

type DeleteContext = Pick<Context, "db" | "secrets" | "log">;

/**
 * Deletes the base and its replica: the whole database when no other base lives there, else its schemas. What lies
 * in a database that the customer hosts stays there.
 */
export async function deleteBase(ctx: DeleteContext, base: Base): Promise<void> {
  await ctx.db`update bases set state = 'deleting' where id = ${base.id}`;
  const database = await getDatabase(ctx.db, base.database.id);
  await withDatabaseLocked(ctx, database, async (tx) => {
    const [other] =
      await tx`select from bases where database_id = ${database.id} and id <> ${base.id} limit 1`;
    if (database.clusterId !== null && other)
      await removeReplica(await databaseAdminUrl(ctx, database), base.database.schema);
    await tx`delete from bases where id = ${base.id}`;
    if (!other) await dropWhole(ctx, tx, database);
  });
  ctx.log.info({ baseId: base.id }, "base deleted");
}

/** Drops a database that was made for a base which then did not come to be. */
export async function removeUnusedDatabase(ctx: DeleteContext, databaseId: string): Promise<void> {
  const database = await getDatabase(ctx.db, databaseId);
  await withDatabaseLocked(ctx, database, async (tx) => {
    const [used] = await tx`select from bases where database_id = ${database.id} limit 1`;
    if (!used) await dropWhole(ctx, tx, database);
  });
}

/** Ends the deletions that a crash or a lost cluster interrupted. @returns bases deleted */
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
  return finished;
}

/**
 * Runs `work` while no base can be added to the database: the insert of one waits for this row's lock, and then
 * fails on its foreign key if the database is gone.
 */
async function withDatabaseLocked(
  ctx: DeleteContext,
  database: Database,
  work: (tx: postgres.TransactionSql) => Promise<void>,
): Promise<void> {
  await ctx.db.begin(async (tx) => {
    const [locked] = await tx`select id from databases where id = ${database.id} for update`;
    if (locked) await work(tx);
  });
}

async function dropWhole(ctx: DeleteContext, tx: postgres.TransactionSql, database: Database): Promise<void> {
  await tx`delete from databases where id = ${database.id}`;
  // Last, so that only a failing commit is left to undo; dropping what is gone already is no error.
  if (database.clusterId === null) return;
  await dropDatabase(await clusterAdminUrl(ctx, database.clusterId), database.name, database.role);
}
