/** Gives SQL users in their database the rights to write that the control plane has stored. */
import type { Context } from "../../context";
import { databaseUrl, grantWrites, setSqlUserWritable } from "../../replica";
import { clusterAdminUrl } from "./clusters";
import type { Database } from "./databases";
import { listSqlUsers, mayWriteSql } from "./sql-user-rows";

/**
 * Idempotent. Tables that have no view to write to are left out.
 *
 * @param role only of this user
 */
export async function applySqlUserWrites(
  ctx: Pick<Context, "db" | "secrets">,
  database: Database,
  role?: string,
): Promise<void> {
  const { id, clusterId, name } = database;
  if (clusterId === null) return;
  const bases = await ctx.db<{ id: string; schema: string }[]>`
    select id, schema_name as schema from bases where database_id = ${id} and sql_writes`;
  const users = (await listSqlUsers(ctx.db, id)).filter((user) => role === undefined || user.role === role);
  if (users.length === 0) return;
  const adminUrl = await clusterAdminUrl(ctx, clusterId);
  for (const user of users) {
    for (const base of bases.filter(({ id: baseId }) => user.writes[baseId])) {
      const target = { url: databaseUrl(adminUrl, name), schema: base.schema };
      await grantWrites(target, { role: user.role, ...user.writes[base.id]! });
    }
  }
  await applyWriteDefaults(ctx, database, role);
}

/**
 * Lets sessions of the database's SQL users write by default if the database is writable, or if they may write to a base
 * there: otherwise they could not write to its views. The tables stay readable only.
 *
 * @param role only of this user
 */
export async function applyWriteDefaults(
  ctx: Pick<Context, "db" | "secrets">,
  { id, clusterId, name, isWritable }: Database,
  role: string | null = null,
): Promise<void> {
  if (clusterId === null) return;
  const adminUrl = await clusterAdminUrl(ctx, clusterId);
  const users = await ctx.db<{ role: string; mayWrite: boolean }[]>`
    select u.role_name as role, ${mayWriteSql(ctx.db)} as "mayWrite"
    from sql_users as u join databases as d on d.id = u.database_id
    where d.id = ${id} and u.agent_id is null and (${role}::text is null or u.role_name = ${role})`;
  for (const user of users) await setSqlUserWritable(adminUrl, name, user.role, isWritable || user.mayWrite);
}
