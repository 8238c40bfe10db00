/** Dropping the databases that replicas live in, while no base can be put into them. */
import type postgres from "postgres";
import type { Context } from "../../context";
import { dropDatabase } from "../../replica";
import { attempt } from "../jobs";
import { clusterAdminUrl } from "./clusters";
import { type Database, getDatabase } from "./databases";

type DropContext = Pick<Context, "db" | "secrets" | "log">;

/** A database without a base that is older than this was left by a process that died. */
const STRAY_AFTER = "1 hour";

/**
 * Runs `work` while no base can be added to the database: the insert of one waits for this row's lock, and then
 * fails on its foreign key if the database is gone.
 */
export async function withDatabaseLocked(
  ctx: DropContext,
  database: Database,
  work: (tx: postgres.TransactionSql) => Promise<void>,
): Promise<void> {
  await ctx.db.begin(async (tx) => {
    const [locked] = await tx`select id from databases where id = ${database.id} for update`;
    if (locked) await work(tx);
  });
}

/** Does a base (another than `baseId`) live in the database, or is one moving there? */
export async function isUsedByOthers(
  tx: postgres.TransactionSql,
  databaseId: string,
  baseId = "",
): Promise<boolean> {
  const [other] = await tx`
    select from bases
    where (database_id = ${databaseId} or move_database_id = ${databaseId}) and id <> ${baseId} limit 1`;
  return other !== undefined;
}

/** Drops the database and what is known of it; one that a customer hosts is only forgotten. */
export async function dropWhole(
  ctx: DropContext,
  tx: postgres.TransactionSql,
  database: Database,
): Promise<void> {
  await tx`delete from databases where id = ${database.id}`;
  // Last, so that only a failing commit is left to undo; dropping what is gone already is no error.
  if (database.clusterId === null) return;
  await dropDatabase(await clusterAdminUrl(ctx, database.clusterId), database.name, database.role);
}

/** Drops a database that was made for a base which then did not come to be. */
export async function removeUnusedDatabase(ctx: DropContext, databaseId: string): Promise<void> {
  const database = await getDatabase(ctx.db, databaseId);
  await withDatabaseLocked(ctx, database, async (tx) => {
    if (!(await isUsedByOthers(tx, database.id))) await dropWhole(ctx, tx, database);
  });
}

/** Drops the databases of ours that no base was put into, or that a move did not get to note. */
export async function removeStrays(ctx: DropContext): Promise<void> {
  const strays = await ctx.db<{ id: string }[]>`
    select d.id from databases as d
    where d.cluster_id is not null and d.created_at < now() - ${STRAY_AFTER}::interval
      and not exists (select from bases as b where d.id in (b.database_id, b.move_database_id))`;
  for (const { id } of strays) {
    const remove = () => removeUnusedDatabase(ctx, id);
    await attempt(ctx.db, { task: "stray", subject: id }, false, remove).catch((error: unknown) => {
      ctx.log.warn({ databaseId: id, error }, "stray database not removed");
    });
  }
}
