/**
 * Installs SQL writes of bases again where a move has left their replicas without them, or with the endpoint of another
 * control plane.
 *
 * I7. `bases.sql_writes_due` says so from before that until they are installed, whatever process dies.
 */
import type { Context } from "../../context";
import { applySqlUserWrites, asMover, getDatabase } from "../placement";
import type { Base } from "./base-row";
import { getBase, replicaTarget } from "./bases";
import { switchSqlWrites } from "./sql-writes";

type RestoreContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** @throws BasetideError as `switchSqlWrites` */
export async function restoreSqlWrites(ctx: RestoreContext, base: Base): Promise<void> {
  await switchSqlWrites(ctx, base, await replicaTarget(ctx, base), base.settings);
  await applySqlUserWrites(ctx, await getDatabase(ctx.db, base.database.id));
  await ctx.db`update bases set sql_writes_due = false where id = ${base.id}`;
}

/** Does so for all bases that need it, unless one is being moved. */
export async function finishSqlWrites(ctx: RestoreContext): Promise<void> {
  const due = await ctx.db<{ id: string }[]>`
    select id from bases where sql_writes_due and sql_writes and state not in ('moving', 'deleting')`;
  for (const { id } of due) {
    try {
      await asMover(ctx.db, id, async () => restoreSqlWrites(ctx, await getBase(ctx.db, id)));
    } catch (error) {
      ctx.log.warn({ baseId: id, error }, "SQL writes could not be installed again after a move");
    }
  }
}
