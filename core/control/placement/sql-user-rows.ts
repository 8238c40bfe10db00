/** Rows of SQL users: further logins of a hosted database, each with a name, a role and a password of its own. */
import type { TransactionSql } from "postgres";
import type { Db } from "../../context";
import { rowById } from "../../ids";
import { jsonParameter } from "../../postgres";

export interface SqlUser {
  id: string;
  databaseId: string;
  /** Unique in its database, ignoring case. */
  name: string;
  /** The user of its credentials. */
  role: string;
  /** E-mail address of the user, or name of the token or operator, who created it. */
  createdBy: string;
  createdAt: Date;
  /** When the watchdog last saw a session of it, to the minute; null: never. */
  lastSeenAt: Date | null;
  /** By id of a base: what it may write there with SQL. */
  writes: Record<string, SqlUserWrites>;
}

/** What a SQL user may write, and when it is sent: at the end of a transaction, or by each statement. */
export interface SqlUserWrites {
  mode: "at_commit" | "at_once";
  /** The source's ids of the tables. */
  tables: string[];
}

/** How much time passes before a later sighting of a user is recorded. */
const SEEN_AGAIN = "1 minute";

/** The database's SQL users without those of agents, by name. */
export async function listSqlUsers(db: Db, databaseId: string): Promise<SqlUser[]> {
  return db<SqlUser[]>`
    ${selectSqlUsers(db)} where database_id = ${databaseId} and agent_id is null order by lower(name), id`;
}

/** SQL users of all accounts, or of one database, with the owner of the account, for the operator. */
export async function listAllSqlUsers(
  db: Db,
  databaseId?: string | undefined,
): Promise<(SqlUser & { email: string })[]> {
  return db`
    select u.*, a.email
    from (${selectSqlUsers(db)}) as u join databases as d on d.id = u."databaseId"
      join accounts as a on a.id = d.account_id
    ${databaseId === undefined ? db`` : db`where d.id = ${databaseId}`}
    order by lower(a.email), d.id, lower(u.name), u.id`;
}

/** Returns the text with the names of the database's SQL users in place of their roles, which its reader does not know. */
export async function nameSqlUsers(db: Db, databaseId: string, text: string): Promise<string> {
  const users = await db<{ role: string; who: string }[]>`
    select role_name as role, format('the %s "%s"', case when agent_id is null then 'SQL user' else 'agent' end, name) as who
    from sql_users where database_id = ${databaseId}`;
  return users.reduce((named, { role, who }) => named.replaceAll(role, who), text);
}

/** @throws BasetideError `not_found`, also if it belongs to another database, or to an agent */
export async function getSqlUser(db: Db, databaseId: string, id: string): Promise<SqlUser> {
  const find = () => db<SqlUser[]>`
    ${selectSqlUsers(db)} where database_id = ${databaseId} and id = ${id} and agent_id is null`;
  return rowById("sql_user", id, find, "This SQL user does not exist");
}

/** The roles of the database's SQL users, also of agents. */
export async function sqlUserRoles(db: Db | TransactionSql, databaseId: string): Promise<string[]> {
  const rows = await db<{ role: string }[]>`
    select role_name as role from sql_users where database_id = ${databaseId} order by role_name`;
  return rows.map(({ role }) => role);
}

/** Whether the user `u` of the database `d` may write to views of SQL writes: its transactions may then have ids. */
export function mayWriteSql(db: Db) {
  return db`(u.writes <> '{}' and exists (
    select from bases as b where b.database_id = d.id and b.sql_writes and u.writes ? b.id))`;
}

/** Records that the roles are connected now: at most once a minute for each. */
export async function recordSqlUsersSeen(db: Db, roles: string[]): Promise<void> {
  if (roles.length === 0) return;
  await db`
    update sql_users set last_seen_at = now()
    where role_name = any (${roles}::text[])
      and (last_seen_at is null or last_seen_at < now() - ${SEEN_AGAIN}::interval)`;
}

/** Stores what the user may write to the base. */
export async function saveSqlUserWrites(
  tx: TransactionSql,
  user: SqlUser,
  baseId: string,
  writes: SqlUserWrites,
): Promise<SqlUser> {
  const given = writes.tables.length === 0 ? {} : { [baseId]: writes };
  // What the user may write to other bases may have changed since it was read.
  const [saved] = await tx<Pick<SqlUser, "writes">[]>`
    update sql_users set writes = writes - ${baseId} || ${jsonParameter(given)}::text::jsonb where id = ${user.id}
    returning writes`;
  return { ...user, ...saved };
}

function selectSqlUsers(db: Db) {
  return db`
    select id, database_id as "databaseId", name, role_name as role, created_by as "createdBy",
      created_at as "createdAt", last_seen_at as "lastSeenAt", writes
    from sql_users`;
}
