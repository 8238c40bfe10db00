/** Drops the databases of replicas, while no base can be added to them. */
import type postgres from "postgres";
import type { Context } from "../../context";
import { dropDatabase } from "../../replica";
import { attempt } from "../jobs";
import { clusterAdminUrl } from "./clusters";
import { type Database, getDatabase } from "./databases";
import { sqlUserRoles } from "./sql-user-rows";

type DropContext = Pick<Context, "db" | "secrets" | "log">;

/** A database without a base that is older than this was left behind by a crash. */
const STRAY_AFTER = "1 hour";

/**
 * Runs `work` while no base can be added to the database: the insert of a base waits for the lock on this row, and
 * then fails on its foreign key if the database was dropped.
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

/** Whether a base other than `baseId` is in the database, or is moving there. */
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

/** Drops the database and its row; for one that a customer hosts, only the row. */
export async function dropWhole(
  ctx: DropContext,
  tx: postgres.TransactionSql,
  database: Database,
): Promise<void> {
  const users = await sqlUserRoles(tx, database.id);
  await tx`delete from databases where id = ${database.id}`;
  // Last, so that only a failed commit remains to be undone; dropping a missing database is not an error.
  if (database.clusterId === null) return;
  await dropDatabase(await clusterAdminUrl(ctx, database.clusterId), database.name, database.role, users);
}

/** Drops a database that was created for a base whose creation then failed. */
export async function removeUnusedDatabase(ctx: DropContext, databaseId: string): Promise<void> {
  const database = await getDatabase(ctx.db, databaseId);
  await withDatabaseLocked(ctx, database, async (tx) => {
    if (!(await isUsedByOthers(tx, database.id))) await dropWhole(ctx, tx, database);
  });
}

/**
 * Drops databases on our clusters that never got a base, or that a move created and did not record. Of one that a customer
 * hosts, only the row goes: it keeps other accounts from using that database.
 */
export async function removeStrays(ctx: DropContext): Promise<void> {
  const strays = await ctx.db<{ id: string }[]>`
    select d.id from databases as d
    where d.created_at < now() - ${STRAY_AFTER}::interval
      and not exists (select from bases as b where d.id in (b.database_id, b.move_database_id))`;
  for (const { id } of strays) {
    const remove = () => removeUnusedDatabase(ctx, id);
    await attempt(ctx.db, { task: "stray", subject: id }, false, remove).catch((error: unknown) => {
      ctx.log.warn({ databaseId: id, error }, "removing an unused database failed");
    });
  }
}
