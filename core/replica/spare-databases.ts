/**
 * Spare databases: complete hosted databases that no account has yet, so that connecting a base does not wait for the
 * creation of one.
 *
 * Only the server knows them: the comment of a spare's role names its installation and its database. The statement that
 * gives the role its password removes that comment, so a spare is claimed once, also by a control plane that was restored
 * from a dump of before.
 * I8. Until it is claimed, the role may not connect, and its password is not known to any process.
 */
import type { Sql } from "postgres";
import { consoleRoleOf, ROLE_PATTERN } from "./database-roles";
import { installReplica } from "./install";
import { quoteIdent } from "./naming";
import {
  databaseUrl,
  dropDatabase,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  randomPassword,
  withAdmin,
} from "./provision";
import { connectionsOfUser } from "./role-limits";
import { runWithPassword } from "./role-password";
import { createConsoleRole } from "./sql-users";

/** The schema that is installed in a spare database. */
export const SPARE_SCHEMA = "public";

type Named = Pick<Provisioned, "database" | "role">;

interface Spare extends Named {
  isComplete: boolean;
}

/** What a claimed database is protected with from then on. */
interface Claim {
  password: string;
  consolePassword: string;
  /** Connections that the role may open. */
  connections: number;
}

/**
 * Makes sure that the server has a spare database of the installation, and drops those that a crash left incomplete. Only
 * one process of an installation may call this at a time.
 */
export async function prepareSpare(adminUrl: string, installation: string): Promise<void> {
  const spares = await spareDatabases(adminUrl, installation);
  for (const { database, role } of spares.filter(({ isComplete }) => !isComplete)) {
    await dropDatabase(adminUrl, database, role);
  }
  if (spares.some(({ isComplete }) => isComplete)) return;
  const named = { ...nameDatabase(), connections: 0 };
  const label = (state: State) =>
    `comment on role ${quoteIdent(named.role)} is '${commentOf(installation, named.database, state)}'`;
  await provisionDatabase(adminUrl, installation, named, {
    ofRole: label("incomplete"),
    atEnd: (admin) => createConsoleRole(admin, { ...named, isWritable: false }, randomPassword()),
  });
  await installReplica(databaseUrl(adminUrl, named.database), {
    schema: SPARE_SCHEMA,
    role: named.role,
    isNew: true,
  });
  await withAdmin(adminUrl, (admin) => admin.unsafe(label("complete")));
}

/**
 * Claims a spare database of the installation.
 *
 * @param record records the database before it is claimed, so that a crash leaves none behind; false if that one is
 *   recorded already
 * @returns undefined if there is none, or another process is claiming one
 */
export async function claimSpare(
  adminUrl: string,
  installation: string,
  { password, consolePassword, connections }: Claim,
  record: (named: Named) => Promise<boolean>,
): Promise<Named | undefined> {
  return withAdmin(adminUrl, async (admin) => {
    // The lock ends with the connection.
    const [lock] = await admin<{ is_mine: boolean }[]>`
      select pg_try_advisory_lock(hashtextextended('basetide claim', 0)) as is_mine`;
    if (!lock!.is_mine) return undefined;
    for (const { database, role, isComplete } of await sparesOf(admin, installation)) {
      if (!isComplete || !(await record({ database, role }))) continue;
      const [name, console] = [role, consoleRoleOf(role)].map(quoteIdent);
      const most = connectionsOfUser(connections);
      await runWithPassword(
        admin,
        consolePassword,
        (secret) => `alter role ${console} password '${secret}' connection limit ${most}`,
      );
      await runWithPassword(
        admin,
        password,
        (secret) =>
          `alter role ${name} password '${secret}' connection limit ${connections}; comment on role ${name} is null`,
      );
      return { database, role };
    }
    return undefined;
  });
}

/** Returns the installation's spare databases on the server. */
export function spareDatabases(adminUrl: string, installation: string): Promise<Spare[]> {
  return withAdmin(adminUrl, (admin) => sparesOf(admin, installation));
}

type State = "complete" | "incomplete";

function commentOf(installation: string, database: string, state: State): string {
  return `${prefixOf(installation)}${database} ${state}`;
}

function prefixOf(installation: string): string {
  return `basetide spare ${installation} `;
}

async function sparesOf(admin: Sql, installation: string): Promise<Spare[]> {
  const rows = await admin<{ role: string; comment: string }[]>`
    select rolname::text as role, shobj_description(oid, 'pg_authid') as comment from pg_roles
    where rolname ~ ${ROLE_PATTERN} and starts_with(shobj_description(oid, 'pg_authid'), ${prefixOf(installation)})
    order by 1`;
  return rows.map(({ role, comment }) => {
    const [database, state] = comment.slice(prefixOf(installation).length).split(" ");
    return { role, database: database!, isComplete: state === "complete" };
  });
}
