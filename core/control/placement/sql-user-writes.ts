/** Gives SQL users in their database the rights to write that the control plane has stored. */
import type { Context } from "../../context";
import { databaseUrl, grantWrites, setSqlUserWritable } from "../../replica";
import { clusterAdminUrl } from "./clusters";
import type { Database } from "./databases";
import { listSqlUsers } from "./sql-user-rows";

/**
 * Idempotent. Tables that have no view to write to are left out.
 *
 * @param role only of this user
 */
export async function applySqlUserWrites(
  ctx: Pick<Context, "config" | "db" | "secrets">,
  { id, clusterId, name, isWritable }: Database,
  role?: string,
): Promise<void> {
  if (clusterId === null) return;
  const bases = await ctx.db<{ id: string; schema: string }[]>`
    select id, schema_name as schema from bases where database_id = ${id} and sql_writes`;
  const users = (await listSqlUsers(ctx.db, id)).filter((user) => role === undefined || user.role === role);
  if (users.length === 0) return;
  const adminUrl = await clusterAdminUrl(ctx, clusterId);
  for (const user of users) {
    const written = bases.filter((base) => user.writes[base.id]);
    for (const base of written) {
      const target = { url: databaseUrl(adminUrl, name), schema: base.schema };
      await grantWrites(target, { role: user.role, ...user.writes[base.id]! });
    }
    // A session that is read-only by default could not write to the views. The tables stay readable only.
    if (written.length > 0 || role !== undefined)
      await setSqlUserWritable(adminUrl, name, user.role, isWritable || written.length > 0);
  }
}
