/**
 * The other database of a base that is being moved to another cluster: the new one until the base is there, then
 * the old one. It is dropped when the move is over, or when no process works on it.
 */
import type { Context, Db } from "../../context";
import { asOnly } from "../../postgres";
import { removeReplica } from "../../replica";
import { attempt } from "../jobs";
import { databaseAdminUrl, getDatabase } from "./databases";
import { dropWhole, isUsedByOthers, withDatabaseLocked } from "./drop-database";
import { revokeUnusedAgentUsers } from "./sql-users";

type DropContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;

/** Runs `work` as the only mover of the base. @returns null, without running it, if another process moves the base */
export function asMover<T>(db: Db, baseId: string, work: () => Promise<T>): Promise<{ result: T } | null> {
  return asOnly(db, `move ${baseId}`, work);
}

/**
 * Drops what a move of the base has created, or left behind, in its other database. Nothing happens if that is no longer
 * its other database: the move may have ended since, and the base be there now.
 */
export async function endMove(
  ctx: DropContext,
  base: { id: string; schema: string },
  databaseId: string,
): Promise<void> {
  const database = await getDatabase(ctx.db, databaseId);
  await withDatabaseLocked(ctx, database, async (tx) => {
    const { count } = await tx`
      update bases set move_database_id = null where id = ${base.id} and move_database_id = ${databaseId}`;
    if (count === 0) return;
    if (await isUsedByOthers(tx, databaseId)) {
      await removeReplica(await databaseAdminUrl(ctx, database), base.schema);
    } else {
      await dropWhole(ctx, tx, database);
    }
  });
  await revokeUnusedAgentUsers(ctx, { databaseId });
}

/** Ends the moves whose process crashed. */
export async function endBrokenMoves(ctx: DropContext): Promise<void> {
  const moves = await ctx.db<{ id: string; schema: string; database_id: string }[]>`
    select id, schema_name as schema, move_database_id as database_id from bases
    where move_database_id is not null`;
  for (const { database_id, ...base } of moves) {
    try {
      const end = () => endMove(ctx, base, database_id);
      await asMover(ctx.db, base.id, () => attempt(ctx.db, { task: "move", subject: base.id }, false, end));
    } catch (error) {
      ctx.log.warn({ baseId: base.id, error }, "ending an interrupted move failed");
    }
  }
}
