/**
 * The roles of a hosted database. One without a login, the readers' role, holds the rights there; the database's own
 * role, the console's and those of SQL users are its members.
 *
 * I8. No role that can log in is a member of another one: a member has the rights of an owner over what the other
 * created, which includes running code as the other, and sees and ends its sessions.
 */
import { createHash } from "node:crypto";
import type { Sql, TransactionSql } from "postgres";
import { schemasOf } from "./connection";
import { quoteIdent } from "./naming";

/** The first version of Postgres in which a member of a role need not be able to act as it. */
export const FIRST_WITH_OPTIONS = 16;

/** Matches the names of roles that customers log in with: `nameDatabase`. */
export const ROLE_PATTERN = "^bt_[0-9a-f]{16}$";

/** Matches the names of all roles of hosted databases. */
export const ANY_ROLE_PATTERN = "^bt_[0-9a-f]{16}(_readers|_console|_revoked|_writes)?$";

const REVOKED_PATTERN = "^bt_[0-9a-f]{16}_revoked$";

/** The role without a login that holds the rights in the database whose own role is `role`. */
export function readersOf(role: string): string {
  return `${role}_readers`;
}

/** The role that the console logs in with. */
export function consoleRoleOf(role: string): string {
  return `${role}_console`;
}

/** The role without a login and without rights that owns what the SQL user with the role `role` made, once it is revoked. */
export function revokedRoleOf(role: string): string {
  return `${role}_revoked`;
}

/**
 * The role without a login that owns what the triggers of SQL writes run.
 *
 * @param role the database's own role; undefined if the customer hosts the database
 */
export function writesOwnerOf(role: string | undefined, database: string): string {
  return `${role ?? `bt_${createHash("sha256").update(database).digest("hex").slice(0, 16)}`}_writes`;
}

/** Creates the readers' role if it does not exist, and makes the database's own role its member. */
export async function ensureReaders(admin: Sql | TransactionSql, role: string): Promise<void> {
  const readers = quoteIdent(readersOf(role));
  const [found] = await admin<{ version: number; is_missing: boolean }[]>`
    select current_setting('server_version_num')::int / 10000 as version,
      to_regrole(quote_ident(${readersOf(role)})) is null as is_missing`;
  await admin.unsafe(`
    ${found!.is_missing ? `create role ${readers} nologin; grant ${readers} to current_user;` : ""}
    ${membership(found!.version, role, role)}`);
}

/** Makes `member` one of the readers. Grants again what differs: the options of a grant are replaced. */
export function membership(version: number, role: string, member: string): string {
  const options = version < FIRST_WITH_OPTIONS ? "" : "with inherit true, set false";
  return `grant ${quoteIdent(readersOf(role))} to ${quoteIdent(member)} ${options}`;
}

/**
 * Lets the readers' role of the database whose own role is `role` read all that is ours in `schema`, including future
 * tables, and what its own role creates there. The readers' role must exist.
 */
export async function grantReads(tx: TransactionSql, schemaName: string, role: string): Promise<void> {
  const { schema, swap } = schemasOf(schemaName);
  const readers = quoteIdent(readersOf(role));
  const [state] = await tx<{ may_connect: boolean; database: string }[]>`
    select current_database() as database, has_database_privilege(${readersOf(role)}, current_database(), 'connect') as may_connect`;
  await tx`update ${tx.unsafe(swap)}._state set reader = ${readersOf(role)}`;
  if (!state!.may_connect)
    await tx.unsafe(`grant connect on database ${quoteIdent(state!.database)} to ${readers}`);
  await tx.unsafe(`
    grant usage on schema ${schema} to ${readers};
    alter default privileges in schema ${schema} grant select on tables to ${readers};`);
  // Only on ours: without superuser rights we could not grant on others', and with them we should not.
  const ours = await tx<{ name: string }[]>`
    select c.relname as name from pg_class as c
    where c.relnamespace = to_regnamespace(${schema}) and c.relkind in ('r', 'p', 'v', 'm')
      and c.relowner = to_regrole(quote_ident(current_user))`;
  const tables = ours.map(({ name }) => `${schema}.${quoteIdent(name)}`);
  if (tables.length > 0) await tx.unsafe(`grant select on ${tables.join(", ")} to ${readers}`);
}

/** Lets the readers read what the database's own role creates from now on, unless that role decides otherwise. */
export function shareOwn(schema: string, role: string): string {
  return `alter default privileges for role ${quoteIdent(role)} in schema ${schema}
    grant select on tables to ${quoteIdent(readersOf(role))};`;
}

/** Returns the roles of customers, without the console's, that are members of `role`. */
async function membersOf(admin: Sql | TransactionSql, role: string): Promise<string[]> {
  const rows = await admin<{ name: string }[]>`
    select distinct r.rolname::text as name from pg_auth_members as m join pg_roles as r on r.oid = m.member
    where m.roleid = to_regrole(quote_ident(${role})) and r.rolname ~ ${ROLE_PATTERN} and not r.rolcreaterole
    order by 1`;
  return rows.map(({ name }) => name);
}

/** Returns the roles of the SQL users, also those of agents, of the database whose own role is `role`. */
export async function usersOf(admin: Sql, role: string): Promise<string[]> {
  // An agent's is not a member of the readers' role: it may connect by itself, as only the database's own role may besides.
  const agents = await admin<{ name: string }[]>`
    select r.rolname::text as name
    from pg_database as d cross join aclexplode(d.datacl) as own cross join aclexplode(d.datacl) as a
      join pg_roles as r on r.oid = a.grantee
    where own.grantee = to_regrole(quote_ident(${role})) and own.privilege_type = 'CONNECT'
      and a.privilege_type = 'CONNECT' and r.rolname ~ ${ROLE_PATTERN} and not r.rolcreaterole`;
  const names = [...(await membersOf(admin, readersOf(role))), ...agents.map(({ name }) => name)];
  return [...new Set(names)].filter((name) => name !== role);
}

/** Returns the roles without a login that own what revoked SQL users of the database have made. */
export async function revokedOf(admin: Sql, role: string): Promise<string[]> {
  const rows = await admin<{ name: string }[]>`
    select distinct r.rolname::text as name from pg_auth_members as m join pg_roles as r on r.oid = m.roleid
    where m.member = to_regrole(quote_ident(${role})) and r.rolname ~ ${REVOKED_PATTERN} order by 1`;
  return rows.map(({ name }) => name);
}
