/** SQL users that may write to tables of a base: which, and how. */
import type { Actor, Context } from "../../context";
import { conflict, invalid } from "../../errors";
import { grantWrites, loadCatalog, openReplica } from "../../replica";
import { recordChange } from "../audit";
import {
  applySqlUserWrites,
  createSqlUser,
  getDatabase,
  revokeSqlUser,
  type SqlUser,
  type SqlUserWrites,
  saveSqlUserWrites,
} from "../placement";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

/** What is asked for: the mode, and the names in SQL or the source's ids of the tables; absent: all that there are. */
export interface AskedWrites {
  mode?: SqlUserWrites["mode"] | undefined;
  tables?: readonly string[] | undefined;
}

type WritersContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;

/**
 * Creates a SQL user of the base's database, which may write what is asked for; without that, nothing.
 *
 * @throws BasetideError as `createSqlUser`, `resolveWrites` and `allowWrites`; then there is no user
 */
export async function createSqlUserOf(
  ctx: WritersContext & { actor: Actor },
  base: Base,
  name: string,
  asked?: AskedWrites | undefined,
): Promise<SqlUser> {
  const database = await getDatabase(ctx.db, base.database.id);
  const writes = asked && (await resolveWrites(ctx, base, asked));
  const user = await createSqlUser(ctx, database, name);
  if (!writes) return user;
  return allowWrites(ctx, base, user, writes).catch(async (error: unknown) => {
    await revokeSqlUser(ctx, database, user);
    throw error;
  });
}

/**
 * Finds the tables that are asked for.
 *
 * @throws BasetideError `conflict` if the base's setting is off, or does not allow the mode; `invalid_request` for an unknown table
 */
export async function resolveWrites(
  ctx: WritersContext,
  base: Base,
  { mode = "at_commit", tables }: AskedWrites,
): Promise<SqlUserWrites> {
  if (!base.settings.sqlWrites)
    throw conflict("SQL writes are off for this base. Turn on its setting `sql_writes` first");
  if (base.settings.sqlWritesQueued && mode === "at_once")
    throw conflict(
      "Writes to this base are queued (`sql_writes_queued`), so nothing can be written at once. Use the mode `at_commit`",
    );
  await using replica = openReplica(await replicaTarget(ctx, base));
  const known = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
  if (tables === undefined) return { mode, tables: known.map(({ tableId }) => tableId) };
  const ids = tables.map((asked) => {
    const found = known.find(({ tableId, name }) => name === asked || tableId === asked);
    if (!found) throw invalid(`The base has no table ${asked}`);
    return found.tableId;
  });
  return { mode, tables: [...new Set(ids)] };
}

/**
 * Lets the SQL user write to these tables of the base, and to no others; without tables, to none.
 *
 * @throws BasetideError `conflict` for a table without a view to write to
 */
export async function allowWrites(
  ctx: WritersContext,
  base: Base,
  user: SqlUser,
  writes: SqlUserWrites,
): Promise<SqlUser> {
  const database = await getDatabase(ctx.db, base.database.id);
  const target = await replicaTarget(ctx, base);
  const missing = await grantWrites(target, { role: user.role, ...writes });
  if (missing.length > 0)
    throw conflict(
      `These tables cannot be written with SQL, because records of them are left out, or they are not copied: ${missing.join(", ")}`,
    );
  const changed = await ctx.db.begin(async (tx) => {
    const saved = await saveSqlUserWrites(tx, user, base.id, writes);
    const details = {
      name: user.name,
      database: user.databaseId,
      writes: writes.mode,
      tables: writes.tables.length,
    };
    await recordChange(tx, ctx.actor, {
      accountId: base.accountId,
      action: "sql_user.writes",
      subject: user.id,
      details,
    });
    return saved;
  });
  await applySqlUserWrites(ctx, database, user.role);
  return changed;
}
