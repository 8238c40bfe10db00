/**
 * The role with which the console reads a hosted database. Customers' applications do not use it, so that a member who
 * runs SQL in the console neither sees nor ends their sessions.
 */
import type { TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { notFound } from "../../errors";
import { consoleRoleOf, ensureConsoleRole, randomPassword, type SqlUserRole } from "../../replica";
import { clusterAdminUrl } from "./clusters";
import type { Database } from "./databases";

type RoleContext = Pick<Context, "db" | "secrets">;

/**
 * Returns the console's login of a hosted database. After its password was rotated, the role gets one when it is first
 * needed.
 *
 * @throws BasetideError `secret_unreadable`, `replica_unavailable`
 */
export async function consoleLogin(ctx: RoleContext, database: Database): Promise<SqlUserRole> {
  const known = await knownConsoleLogin(ctx, database);
  if (known) return known;
  const adminUrl = await clusterAdminUrl(ctx, database.clusterId!);
  return ctx.db.begin(async (tx) => {
    // One process at a time creates it, and none while the database is deleted.
    const [locked] = await tx`select from databases where id = ${database.id} for update`;
    if (!locked) throw notFound(`There is no database ${database.id}`);
    const made = await knownConsoleLogin({ ...ctx, db: tx }, database);
    if (made) return made;
    const password = randomPassword();
    await ensureConsoleRole(adminUrl, { ...database, database: database.name }, password);
    const encrypted = ctx.secrets.encrypt(password, `databases.console_password:${database.id}`);
    await tx`update databases set encrypted_console_password = ${encrypted} where id = ${database.id}`;
    return { role: consoleRoleOf(database.role), password };
  });
}

/** Returns the login if the role was created. @throws BasetideError `secret_unreadable` */
export async function knownConsoleLogin(
  { db, secrets }: { db: Db | TransactionSql; secrets: Context["secrets"] },
  { id, role }: Pick<Database, "id" | "role">,
): Promise<SqlUserRole | undefined> {
  const [row] = await db<{ encrypted: string | null }[]>`
    select encrypted_console_password as encrypted from databases where id = ${id}`;
  if (!row?.encrypted) return undefined;
  return {
    role: consoleRoleOf(role),
    password: secrets.decrypt(row.encrypted, `databases.console_password:${id}`),
  };
}
