/**
 * Installs SQL writes of bases again where a move or a repair has left their replicas without them, and where those that
 * are installed are of an earlier version or call another address.
 *
 * I7. `bases.sql_writes_installed` says what is installed: nothing, from before a replica loses it, whatever process dies.
 */
import type { Context } from "../../context";
import { isTemplateOutdated } from "../../postgres";
import { applySqlUserWrites, asMover, getDatabase } from "../placement";
import type { Base } from "./base-row";
import { getBase, replicaTarget } from "./bases";
import { installedWrites, switchSqlWrites } from "./sql-writes";

type RestoreContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** @throws BasetideError as `switchSqlWrites` */
export async function restoreSqlWrites(ctx: RestoreContext, base: Base): Promise<void> {
  await switchSqlWrites(ctx, base, await replicaTarget(ctx, base), base.settings);
  await applySqlUserWrites(ctx, await getDatabase(ctx.db, base.database.id));
  // A replica that was made again gets its tables, and so their views, by a sync: then once more.
  await ctx.db`
    update bases set
      sql_writes_installed = case when resync_requested_at is null then ${installedWrites(ctx, base.settings)} end
    where id = ${base.id}`;
}

/** Does so for all bases that need it and can be synced, unless one is being moved. */
export async function finishSqlWrites(ctx: RestoreContext): Promise<void> {
  const rows = await ctx.db<{ id: string; isQueued: boolean; installed: string | null }[]>`
    select id, sql_writes_queued as "isQueued", sql_writes_installed as installed from bases
    where sql_writes and state in ('starting', 'active') order by id`;
  const versions = [false, true].map((sqlWritesQueued) =>
    installedWrites(ctx, { sqlWrites: true, sqlWritesQueued }),
  );
  const isDue = ({ isQueued, installed }: (typeof rows)[number]) => {
    const version = versions[Number(isQueued)] ?? null;
    return version !== null && isTemplateOutdated(installed, version);
  };
  for (const { id } of rows.filter(isDue)) {
    try {
      await asMover(ctx.db, id, async () => restoreSqlWrites(ctx, await getBase(ctx.db, id)));
    } catch (error) {
      ctx.log.warn({ baseId: id, error }, "SQL writes could not be installed again");
    }
  }
}
