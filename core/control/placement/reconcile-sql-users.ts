/** Compares the roles of a hosted database's SQL users with what the control plane expects. */
import { type CheckResult, warning } from "../../check-result";
import type { Context } from "../../context";
import { dropSqlUserRole, examineSqlUserRoles, restoreSqlUserRole, type SqlUserRole } from "../../replica";
import type { Database } from "./databases";
import { repairable } from "./record-repair";
import { applySqlUserWrites } from "./sql-user-writes";
import type { SqlUserLogin } from "./sql-users";

type RepairContext = Pick<Context, "config" | "db" | "secrets" | "actor">;

/** @param console the login of the console, if it has one. @throws BasetideError `replica_unavailable` */
export async function checkSqlUsers(
  ctx: RepairContext,
  database: Database,
  adminUrl: string,
  users: SqlUserLogin[],
  console: SqlUserRole | undefined,
): Promise<CheckResult[]> {
  const home = { ...database, database: database.name };
  const members = [
    ...users.map((user) => ({ user, isWritable: home.isWritable, who: `SQL user "${user.name}"` })),
    ...(console ? [{ user: console, isWritable: false, who: "role for the console" }] : []),
  ];
  const { states, unknown } = await examineSqlUserRoles(
    adminUrl,
    home,
    members.map(({ user }) => user),
  );
  const results: CheckResult[] = [];
  const add = (message: string, remedy: string, work: () => Promise<void>) =>
    results.push(repairable(ctx, database, message, remedy, work));
  for (const [index, state] of states.entries()) {
    const { user, isWritable, who } = members[index]!;
    const restore = async () => {
      await restoreSqlUserRole(adminUrl, { ...home, isWritable }, user);
      await applySqlUserWrites(ctx, database, user.role);
    };
    if (!state.exists)
      add(`the role of its ${who} does not exist`, "creates it with the same password", restore);
    else if (!state.isMember || !state.isLimited) {
      add(`its ${who} lacks the rights or the limits of a SQL user`, "sets them", restore);
    } else if (!state.takesPassword) {
      add(`the server does not accept the password of its ${who}`, "sets that password again", restore);
    }
    if (state.pausedUntil) {
      const message = `${database.name}: its ${who} consumed transaction ids too fast and may not connect until ${state.pausedUntil.toISOString()}`;
      results.push(warning("replica", message, endOfPause(database)));
    }
  }
  for (const role of unknown) {
    const remedy = "drops it; what it created no longer runs, and belongs to a role without a login";
    add(`the role ${role} has the rights of a SQL user and is none of them`, remedy, async () => {
      // It may have been created since.
      const [known] = await ctx.db`select from sql_users where role_name = ${role}`;
      if (!known) await dropSqlUserRole(adminUrl, home, role);
    });
  }
  return results;
}

export function endOfPause({ id, connections }: Pick<Database, "id" | "connections">): string {
  return `A worker ends the pause then. To end it now, run \`database set-connections ${id} ${connections}\``;
}
