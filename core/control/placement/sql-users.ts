/**
 * SQL users of hosted databases: created, shown, rotated and revoked one by one, without a change for the others.
 *
 * A role is created before its row is committed, and dropped before its row is deleted. After a crash between the two,
 * `doctor` drops a role whose password was never shown, and revoking the user again completes a revocation.
 */
import type { TransactionSql } from "postgres";
import type { Actor, Context, Db } from "../../context";
import { BasetideError, conflict, isBasetideError, notFound } from "../../errors";
import { newId } from "../../ids";
import { checkedName, isUniqueViolation, jsonParameter } from "../../postgres";
import {
  createSqlUserRole,
  dropSqlUserRole,
  endSessionsOf,
  nameDatabase,
  rotatePassword,
  type SqlUserRole,
} from "../../replica";
import { countChange, recordChange } from "../audit";
import { clusterAdminUrl } from "./clusters";
import { type Credentials, type Database, getDatabase, toCredentials } from "./databases";
import { getSqlUser, listSqlUsers, type SqlUser } from "./sql-user-rows";

type UserContext = Pick<Context, "config" | "db" | "secrets" | "log" | "actor">;

const MOST_LISTED = 50;
const INSUFFICIENT_PRIVILEGE = "42501";

/**
 * Creates a SQL user, which reads what the database's own role reads.
 *
 * @throws BasetideError `invalid_request` for an invalid name, `already_exists` for a name that is taken, `conflict`
 *   for a database that the customer hosts, at the limit of users, or on a server that cannot have them
 */
export async function createSqlUser(
  ctx: UserContext & { actor: Actor },
  database: Database,
  text: string,
): Promise<SqlUser> {
  return getSqlUser(
    ctx.db,
    database.id,
    await addUser(ctx, database, {
      name: checkedName(text, "A SQL user"),
      createdBy: ctx.actor.name,
    }),
  );
}

/** Returns what a SQL client of the user needs. @throws BasetideError `secret_unreadable`, `not_found` */
export async function sqlUserCredentials(
  ctx: Pick<Context, "db" | "secrets">,
  database: Database,
  user: SqlUser,
): Promise<Credentials> {
  const [row] = await ctx.db<{ encrypted: string }[]>`
    select encrypted_password as encrypted from sql_users where id = ${user.id}`;
  if (!row) throw notFound("This SQL user does not exist");
  const password = ctx.secrets.decrypt(row.encrypted, `sql_users.password:${user.id}`);
  return toCredentials({ ...database, role: user.role }, password, "");
}

/** As `sqlUserCredentials`, for a person or program, and recorded: one entry per actor and hour. */
export async function showSqlUserCredentials(
  ctx: Pick<Context, "db" | "secrets"> & { actor: Actor },
  database: Database,
  user: SqlUser,
): Promise<Credentials> {
  const change = { accountId: database.accountId, subject: user.id, details: detailsOf(user) };
  await countChange(ctx.db, ctx.actor, { ...change, action: "credentials.shown" });
  return sqlUserCredentials(ctx, database, user);
}

/** Gives the user a new password; the old one no longer works. Open sessions stay. */
export async function rotateSqlUser(
  ctx: UserContext,
  database: Database,
  user: SqlUser,
): Promise<Credentials> {
  const adminUrl = await hostOf(ctx, database);
  return ctx.db.begin(async (tx) => {
    // Of two rotations at once, the later one is stored.
    await tx`select from sql_users where id = ${user.id} for no key update`;
    // A crash before the commit leaves an unknown password; another rotation repairs that.
    const password = await rotatePassword(adminUrl, user.role);
    const encrypted = ctx.secrets.encrypt(password, `sql_users.password:${user.id}`);
    await tx`update sql_users set encrypted_password = ${encrypted} where id = ${user.id}`;
    const change = { accountId: database.accountId, subject: user.id, details: detailsOf(user) };
    await recordChange(tx, ctx.actor, { ...change, action: "sql_user.rotated" });
    return toCredentials({ ...database, role: user.role }, password, "");
  });
}

/**
 * Ends the user's sessions and deletes it. What it created no longer runs, and belongs to a role without a login; the
 * activity lists it.
 */
export async function revokeSqlUser(ctx: UserContext, database: Database, user: SqlUser): Promise<void> {
  const { name, role } = database;
  const left = await dropSqlUserRole(await hostOf(ctx, database), { database: name, role }, user.role);
  await ctx.db.begin(async (tx) => {
    const { count } = await tx`delete from sql_users where id = ${user.id}`;
    if (count === 0) return;
    const details = {
      ...detailsOf(user),
      ...listed("dropped", left.dropped),
      ...listed("disowned", left.kept),
    };
    const change = { accountId: database.accountId, subject: user.id, details };
    await recordChange(tx, ctx.actor, { ...change, action: "sql_user.revoked" });
  });
}

/** Ends the user's sessions. */
export async function endSqlUserSessions(ctx: UserContext, database: Database, user: SqlUser): Promise<void> {
  await endSessionsOf(await hostOf(ctx, database), user.role);
}

/** Creates the users of `from` in `to`, with the same names, and new roles and passwords: a base moves there. */
export async function copySqlUsers(ctx: UserContext, from: Database, to: Database): Promise<void> {
  for (const { name, createdBy, writes } of await listSqlUsers(ctx.db, from.id)) {
    const id = await addUser(ctx, to, { name, createdBy });
    await ctx.db`update sql_users set writes = ${jsonParameter(writes)}::text::jsonb where id = ${id}`;
  }
}

interface LoginRow {
  id: string;
  role: string;
  encrypted: string;
}

/**
 * Returns the login of an agent's role in a hosted database, which reads only what it is granted. Creates it when it is
 * first needed: the base may have moved to this database.
 *
 * @throws BasetideError as `createSqlUser`, `secret_unreadable`; `not_found` if the agent reads no base there
 */
export async function agentLogin(
  ctx: UserContext,
  database: Database,
  agent: { id: string; name: string; createdBy: string },
): Promise<SqlUserRole> {
  const known = await knownAgentLogin(ctx, database, agent.id);
  if (known) return known;
  await addUser(ctx, database, { ...agent, agentId: agent.id }).catch((error: unknown) => {
    // Another call was faster.
    if (!isUniqueViolation(error, "sql_users_agent_key")) throw error;
  });
  const made = await knownAgentLogin(ctx, database, agent.id);
  if (made) return made;
  throw notFound("This agent does not exist");
}

async function knownAgentLogin(
  ctx: Pick<Context, "db" | "secrets">,
  database: Database,
  agentId: string,
): Promise<SqlUserRole | undefined> {
  const [row] = await ctx.db<LoginRow[]>`
    select id, role_name as role, encrypted_password as encrypted from sql_users
    where agent_id = ${agentId} and database_id = ${database.id}`;
  return (
    row && { role: row.role, password: ctx.secrets.decrypt(row.encrypted, `sql_users.password:${row.id}`) }
  );
}

/** Returns the agent's roles, by database. */
export async function agentRoles(db: Db, agentId: string): Promise<Map<string, string>> {
  const rows = await db<{ databaseId: string; role: string }[]>`
    select database_id as "databaseId", role_name as role from sql_users where agent_id = ${agentId}`;
  return new Map(rows.map(({ databaseId, role }) => [databaseId, role]));
}

/**
 * Revokes all SQL users of an agent, as `revokeSqlUser` does: also those after one whose database cannot be reached.
 *
 * @throws BasetideError `replica_unavailable`, `replica_busy`
 */
export async function revokeAgentUsers(ctx: UserContext, agentId: string): Promise<void> {
  const users = await agentUsers(ctx.db, ctx.db`u.agent_id = ${agentId}`);
  const failed = await revokeEach(ctx, users);
  if (failed.length > 0) throw failed[0];
}

/**
 * Revokes the SQL users of agents in databases of which they read no base any longer. One that cannot be revoked now can
 * read nothing that is granted by `grantAgent`, and is revoked by the next such call.
 */
export async function revokeUnusedAgentUsers(
  ctx: UserContext,
  of: { agentId: string } | { databaseId: string },
): Promise<void> {
  const { db } = ctx;
  const where = "agentId" in of ? db`u.agent_id = ${of.agentId}` : db`u.database_id = ${of.databaseId}`;
  const users = await agentUsers(
    db,
    db`${where} and not exists (
    select from agent_bases as a join bases as b on b.id = a.base_id
    where a.agent_id = u.agent_id and b.database_id = u.database_id and b.state <> 'deleting')`,
  );
  for (const error of await revokeEach(ctx, users))
    ctx.log.warn({ error }, "an agent's unused SQL user could not be revoked yet");
}

function agentUsers(db: Db, where: ReturnType<Db>): Promise<SqlUser[]> {
  return db<SqlUser[]>`
    select u.id, u.database_id as "databaseId", u.name, u.role_name as role from sql_users as u
    where u.agent_id is not null and ${where}`;
}

/** @returns the errors of those that could not be revoked */
async function revokeEach(ctx: UserContext, users: SqlUser[]): Promise<unknown[]> {
  const failed: unknown[] = [];
  for (const user of users) {
    try {
      await revokeSqlUser(ctx, await getDatabase(ctx.db, user.databaseId), user);
    } catch (error) {
      // With its database, the user is gone.
      if (!isBasetideError(error, "not_found")) failed.push(error);
    }
  }
  return failed;
}

/** A role and its password, and the name of its user. */
export type SqlUserLogin = SqlUserRole & Pick<SqlUser, "name">;

/** The roles and passwords of the database's users. @throws BasetideError `secret_unreadable` */
export async function loginsOf(
  ctx: Pick<Context, "db" | "secrets">,
  databaseId: string,
): Promise<SqlUserLogin[]> {
  const rows = await ctx.db<(LoginRow & { name: string; isAgent: boolean })[]>`
    select id, name, role_name as role, encrypted_password as encrypted, agent_id is not null as "isAgent" from sql_users
    where database_id = ${databaseId} order by lower(name)`;
  return rows.map(({ id, name, role, isAgent, encrypted }) => ({
    name,
    role,
    isAgent,
    password: ctx.secrets.decrypt(encrypted, `sql_users.password:${id}`),
  }));
}

async function addUser(
  ctx: UserContext,
  database: Database,
  { name, createdBy, agentId }: Pick<SqlUser, "name" | "createdBy"> & { agentId?: string },
): Promise<string> {
  const adminUrl = await hostOf(ctx, database);
  const id = newId("sql_user");
  const { role, password } = nameDatabase();
  const encrypted = ctx.secrets.encrypt(password, `sql_users.password:${id}`);
  const home = { ...database, database: database.name };
  try {
    await ctx.db.begin(async (tx) => {
      // Waits for a deletion of the database, and lets concurrent requests count one after the other.
      const [locked] = await tx`select from databases where id = ${database.id} for update`;
      if (!locked) throw notFound(`There is no database ${database.id}`);
      if (agentId !== undefined) {
        // Before its bases, as a revocation does.
        await tx`select from agents where id = ${agentId} for key share`;
        await requireReads(tx, database.id, agentId);
      }
      await requireRoom(tx, database.id, ctx.config.databaseSqlUsers);
      await tx`
        insert into sql_users (id, database_id, name, role_name, encrypted_password, created_by, agent_id)
        values (${id}, ${database.id}, ${name}, ${role}, ${encrypted}, ${createdBy}, ${agentId ?? null})`;
      const details = detailsOf({ name, databaseId: database.id });
      const change = { accountId: database.accountId, subject: id, details };
      await recordChange(tx, ctx.actor, { ...change, action: "sql_user.created" });
      await createSqlUserRole(adminUrl, home, { role, password, isAgent: agentId !== undefined }).catch(
        async (error: unknown) => {
          await dropSqlUserRole(adminUrl, home, role).catch((dropError: unknown) =>
            ctx.log.warn({ error: dropError, role }, "dropping the role of a failed new SQL user failed"),
          );
          throw refusal(error);
        },
      );
    });
  } catch (error) {
    if (!isUniqueViolation(error, "sql_users_name_key")) throw error;
    throw new BasetideError("already_exists", `A SQL user named "${name}" already exists`);
  }
  return id;
}

/** Holds the row by which the agent reads there until the user is committed: who removes that row then finds the user. */
async function requireReads(tx: TransactionSql, databaseId: string, agentId: string): Promise<void> {
  const reads = await tx`
    select from agent_bases as a join bases as b on b.id = a.base_id
    where a.agent_id = ${agentId} and b.database_id = ${databaseId} and b.state <> 'deleting'
    for key share of a`;
  if (reads.length === 0) throw notFound("This agent may not read this base");
}

async function requireRoom(tx: TransactionSql, databaseId: string, most: number): Promise<void> {
  const [has] = await tx<{ users: number }[]>`
    select count(*)::int as users from sql_users where database_id = ${databaseId}`;
  if (has!.users < most) return;
  throw conflict(
    `This database has ${has!.users} SQL users, its maximum. Revoke one, or ask the operator for more (DATABASE_SQL_USERS)`,
  );
}

/** The admin URL of the database's cluster. @throws BasetideError `conflict` if the customer hosts it */
async function hostOf(ctx: UserContext, { clusterId }: Database): Promise<string> {
  if (clusterId !== null) return clusterAdminUrl(ctx, clusterId);
  throw conflict(
    "You host this database: create, change and drop its users on your server. The Connect page shows the statements",
  );
}

/** The server's refusal to create a role, as an error with a remedy; other errors as they are. */
function refusal(error: unknown): unknown {
  if (!isBasetideError(error) || error.details?.sqlState !== INSUFFICIENT_PRIVILEGE) return error;
  return new BasetideError(
    "conflict",
    "The server does not let Basetide's role create SQL users, because it lacks a privilege. The operator's `doctor` command names it",
    { cause: error },
  );
}

/** Up to `MOST_LISTED` objects, for the activity page. */
function listed(key: string, objects: string[]): Record<string, string> {
  if (objects.length === 0) return {};
  const more = objects.length - MOST_LISTED;
  return { [key]: objects.slice(0, MOST_LISTED).join(", ") + (more > 0 ? `, and ${more} more` : "") };
}

/** `database` is an id: the activity page shows the name of its base. */
function detailsOf({ name, databaseId }: Pick<SqlUser, "name" | "databaseId">) {
  return { name, database: databaseId };
}
