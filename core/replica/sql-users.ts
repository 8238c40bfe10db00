/**
 * Roles of SQL users: further logins of a hosted database, and the console's, which is one of them to the server. Each
 * has its rights as a member of the readers' role, and the limits of the database's own role; Postgres passes settings
 * of a role on to no member, so they are set on each.
 *
 * I8. What a SQL user creates runs with the rights of no other role, and not at all once the user is revoked.
 */
import type { Sql, TransactionSql } from "postgres";
import { BasetideError } from "../errors";
import {
  consoleRoleOf,
  FIRST_WITH_OPTIONS,
  membership,
  readersOf,
  revokedRoleOf,
  usersOf,
} from "./database-roles";
import { installReaders } from "./install";
import { quoteIdent } from "./naming";
import { pausedUntil } from "./paused-roles";
import {
  createRole,
  databaseUrl,
  limitRole,
  overRaces,
  type Provisioned,
  setPassword,
  withAdmin,
} from "./provision";
import { settableLimits, takesPassword } from "./reconcile";
import { connectionsOfUser, ENFORCED_SETTINGS } from "./role-limits";
import { majorVersion, serverSql } from "./server-roles";

const revokedHooks = serverSql("revoked-hooks.sql");
const revokedCode = serverSql("revoked-code.sql");
/** Longest wait for the end of a session, and for a lock on an object of a dropped user. */
const WAIT_MS = 5000;

export interface SqlUserRole {
  role: string;
  password: string;
  /** It is an agent's, which reads only what it is granted itself: `grantColumns`. */
  isAgent?: boolean | undefined;
}

/** The database that SQL users belong to. `role` is its own role. */
type Home = Pick<Provisioned, "database" | "role" | "connections"> & { isWritable: boolean };

/** @throws BasetideError `conflict` on a server that cannot have SQL users */
export async function createSqlUserRole(adminUrl: string, home: Home, user: SqlUserRole): Promise<void> {
  const version = await withAdmin(adminUrl, majorVersion);
  if (version < FIRST_WITH_OPTIONS && !user.isAgent) {
    throw new BasetideError(
      "conflict",
      `The database is on Postgres ${version}, and SQL users need ${FIRST_WITH_OPTIONS} or later: before, a user could act as the role that all of them are members of. The operator can upgrade the server, or move the base to another one`,
    );
  }
  await createMember(adminUrl, home, user);
}

/** Creates the role with which the console logs in to a database that was just installed. */
export async function createConsoleRole(admin: Sql, home: Home, password: string): Promise<void> {
  await addRole(admin, { ...home, isWritable: false }, { role: consoleRoleOf(home.role), password });
}

/** Creates the role with which the console logs in, or gives it this password if it exists. */
export async function ensureConsoleRole(adminUrl: string, home: Home, password: string): Promise<void> {
  const user = { role: consoleRoleOf(home.role), password };
  // It never writes, whatever the database's other roles may do.
  await restoreSqlUserRole(adminUrl, { ...home, isWritable: false }, user);
}

async function createMember(adminUrl: string, home: Home, user: SqlUserRole): Promise<void> {
  await installReaders(adminUrl, home);
  await withAdmin(adminUrl, (admin) => addRole(admin, home, user));
}

async function addRole(admin: Sql, home: Home, user: SqlUserRole): Promise<void> {
  const limited = { ...user, connections: connectionsOfUser(home.connections) };
  await createRole(admin, limited, await rightsOf(admin, home, user));
  if (home.isWritable && !user.isAgent) await admin.unsafe(writableDefault(home.database, user.role, true));
}

/** Lets the user's sessions write by default, as those of a writable database's own role, or no longer. Idempotent. */
export async function setSqlUserWritable(
  adminUrl: string,
  database: string,
  role: string,
  isWritable: boolean,
): Promise<void> {
  await withAdmin(adminUrl, (admin) =>
    overRaces(() => admin.unsafe(writableDefault(database, role, isWritable))),
  );
}

/** What becomes of what a revoked SQL user has made. */
export interface Revoked {
  /** What ran its code on others' tables, and was dropped: triggers, rules, indexes, defaults and constraints. */
  dropped: string[];
  /** What belongs to a role without a login and without rights from now on. Functions no longer run. */
  kept: string[];
}

/**
 * Ends the sessions of the user and drops it. What it made belongs to a role without a login and without rights
 * afterwards, and its code no longer runs. A role that no longer exists is no error.
 *
 * @throws BasetideError `replica_busy` if another session holds a lock on an object that the user created. The user
 *   can no longer log in then, and the next call drops it
 */
export async function dropSqlUserRole(
  adminUrl: string,
  { database, role: owner }: Pick<Home, "database" | "role">,
  role: string,
): Promise<Revoked> {
  const revoked: Revoked = { dropped: [], kept: [] };
  await withAdmin(databaseUrl(adminUrl, database), async (admin) => {
    const [found] = await admin`select from pg_roles where rolname = ${role}`;
    if (!found) return;
    const name = quoteIdent(role);
    await overRaces(() => admin.unsafe(`alter role ${name} nologin`));
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`;
    await admin`select pg_terminate_backend(pid, ${WAIT_MS}) from pg_stat_activity where usename = ${role}`;
    await overRaces(() =>
      admin.begin(async (tx) => {
        await tx.unsafe(`set local lock_timeout = ${WAIT_MS}`);
        Object.assign(revoked, await disown(tx, role, owner));
        await tx.unsafe(`drop owned by ${name}; drop role ${name}`);
      }),
    );
  });
  return revoked;
}

/** Disables the code of `role` in this database, and gives what it made to a role without a login. */
async function disown(tx: TransactionSql, role: string, owner: string): Promise<Revoked> {
  const heir = revokedRoleOf(role);
  const [name, to, own] = [role, heir, owner].map(quoteIdent);
  const statementsOf = (text: string) =>
    tx.unsafe<{ what: string; statement: string }[]>(
      text.replaceAll("{{role}}", `'${role}'`).replaceAll("{{place}}", `'${heir}'`),
    );
  const hooks = await statementsOf(revokedHooks);
  for (const { statement } of hooks) await tx.unsafe(statement);
  const dropped = hooks.map(({ what }) => what);
  const kept = await tx<{ what: string }[]>`
    select pg_describe_object(d.classid, d.objid, d.objsubid) as what from pg_shdepend as d
    where d.refclassid = 'pg_authid'::regclass and d.refobjid = to_regrole(quote_ident(${role})) and d.deptype = 'o'
      and d.dbid = (select oid from pg_database where datname = current_database())
      and d.classid <> 'pg_default_acl'::regclass
    order by 1`;
  if (kept.length === 0) return { dropped, kept: [] };
  // The database's own role can look through what is left, and drop it, after `set role`; it has none of its rights.
  await tx.unsafe(`
    create role ${to} nologin;
    grant ${to} to current_user;
    grant ${to} to ${own} with inherit false, set true;
    create schema ${to}`);
  for (const { statement } of await statementsOf(revokedCode)) await tx.unsafe(statement);
  const places = await tx<{ name: string }[]>`
    select quote_ident(nspname) as name from pg_namespace
    where to_regclass(format('%I._state', nspname || '_swap')) is not null or nspname = ${heir}`;
  const schemas = places.map(({ name }) => name).join(", ");
  // Postgres lets only a role that may create there own a function.
  await tx.unsafe(`
    grant create on schema ${schemas} to ${to};
    reassign owned by ${name} to ${to};
    revoke create on schema ${schemas} from ${to};
    grant usage on schema ${schemas} to ${to};
    alter schema ${to} owner to ${to}`);
  const tables = await tx<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class as c
    where c.relowner = to_regrole(quote_ident(${heir})) and c.relkind in ('r', 'p', 'm')`;
  for (const table of tables) await tx.unsafe(`grant select on ${table.name} to ${own}`);
  return { dropped, kept: kept.map(({ what }) => what) };
}

interface SqlUserRoleState {
  role: string;
  exists: boolean;
  /** It may log in, and is a member of the readers' role alone, without being able to act as that. */
  isMember: boolean;
  isLimited: boolean;
  takesPassword: boolean;
  /** The watchdog forbids the role to connect until then. */
  pausedUntil: Date | null;
}

/**
 * Compares the roles on the server with `users`.
 *
 * @returns also roles that have the rights of a SQL user of the database and are none of `users`
 */
export async function examineSqlUserRoles(
  adminUrl: string,
  home: Home,
  users: SqlUserRole[],
): Promise<{ states: SqlUserRoleState[]; unknown: string[] }> {
  const found = await withAdmin(adminUrl, async (admin) => {
    const rows: ({ user: SqlUserRole } & RoleRow)[] = [];
    const known = users.map(({ role }) => role);
    const unknown = (await usersOf(admin, home.role)).filter((role) => !known.includes(role));
    const settable = (await settableLimits(admin)).map((name) => `${name}=${ENFORCED_SETTINGS[name]}`);
    for (const user of users) rows.push({ user, ...(await readRole(admin, home, user, settable)) });
    return { rows, unknown };
  });
  const states: SqlUserRoleState[] = [];
  for (const { user, ...row } of found.rows) {
    const isKnown = row.exists && row.isMember;
    const accepts = !isKnown || (await takesPassword(adminUrl, { ...user, database: home.database }));
    states.push({ role: user.role, ...row, takesPassword: accepts });
  }
  return { states, unknown: found.unknown };
}

type RoleRow = Omit<SqlUserRoleState, "role" | "takesPassword">;

async function readRole(
  admin: Sql,
  home: Home,
  { role, isAgent = false }: SqlUserRole,
  settable: string[],
): Promise<RoleRow> {
  const until = await pausedUntil(admin, role);
  const [row] = await admin<{ is_member: boolean; limits: string[] | null }[]>`
    select r.rolcanlogin and r.rolinherit and case when ${isAgent}
        then has_database_privilege(r.oid, ${home.database}, 'connect')
          and not exists (select from pg_auth_members as m where m.member = r.oid)
        else coalesce((select bool_and(m.roleid = to_regrole(quote_ident(${readersOf(home.role)}))
          and coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true)
          and not coalesce((to_jsonb(m) ->> 'set_option')::boolean, false))
        from pg_auth_members as m where m.member = r.oid), false) end as is_member,
      coalesce(r.rolconfig, '{}') || ('connections=' || r.rolconnlimit) || ('member=' || pg_has_role(r.oid, 'usage'))
        as limits
    from pg_roles as r where r.rolname = ${role}`;
  const connections = until ? 0 : connectionsOfUser(home.connections);
  const wanted = [`connections=${connections}`, "member=true", ...settable];
  return {
    exists: row !== undefined,
    isMember: row?.is_member === true,
    isLimited: wanted.every((limit) => row?.limits?.includes(limit)),
    pausedUntil: until,
  };
}

/** Creates a missing role again with the password that it had, or restores its rights, limits and password. */
export async function restoreSqlUserRole(adminUrl: string, home: Home, user: SqlUserRole): Promise<void> {
  const exists = await withAdmin(adminUrl, async (admin) => {
    const [found] = await admin`select from pg_roles where rolname = ${user.role}`;
    return found !== undefined;
  });
  if (!exists) return createMember(adminUrl, home, user);
  await installReaders(adminUrl, home);
  await withAdmin(adminUrl, async (admin) => {
    const name = quoteIdent(user.role);
    const rights = await rightsOf(admin, home, user);
    await overRaces(() =>
      admin.unsafe(`alter role ${name} login inherit; grant ${name} to current_user; ${rights}`),
    );
    await limitRole(admin, user.role, connectionsOfUser(home.connections));
  });
  await setPassword(adminUrl, user.role, user.password);
  await setSqlUserWritable(adminUrl, home.database, user.role, home.isWritable && !user.isAgent);
}

/** What lets the role read: membership of the readers' role, or for an agent's only the right to connect. */
async function rightsOf(admin: Sql, home: Home, { role, isAgent }: SqlUserRole): Promise<string> {
  return isAgent
    ? `grant connect on database ${quoteIdent(home.database)} to ${quoteIdent(role)}`
    : membership(await majorVersion(admin), home.role, role);
}

function writableDefault(database: string, role: string, isWritable: boolean): string {
  const alter = `alter role ${quoteIdent(role)} in database ${quoteIdent(database)}`;
  return isWritable
    ? `${alter} set default_transaction_read_only = off`
    : `${alter} reset default_transaction_read_only`;
}
