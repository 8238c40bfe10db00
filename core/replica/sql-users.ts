/**
 * Roles of SQL users: further logins of a hosted database. Each has the rights of the database's own role by
 * membership, and the same limits; Postgres passes settings of a role on to no member, so they are set on each.
 *
 * I8. A SQL user may not act as the database's role, so it can change neither its password nor another user's.
 */
import type { Sql } from "postgres";
import { BasetideError } from "../errors";
import { quoteIdent } from "./naming";
import { pausedUntil } from "./paused-roles";
import {
  createRole,
  databaseUrl,
  limitRole,
  overRaces,
  type Provisioned,
  setPassword,
  usersOf,
  withAdmin,
} from "./provision";
import { settableLimits, takesPassword } from "./reconcile";
import { connectionsOfUser, ENFORCED_SETTINGS } from "./role-limits";
import { majorVersion } from "./server-roles";

/** Before, a member of a role may always act as it. */
const FIRST_MAJOR_VERSION = 16;
/** Longest wait for the end of a session, and for a lock on an object of a dropped user. */
const WAIT_MS = 5000;

export interface SqlUserRole {
  role: string;
  password: string;
}

/** The database that SQL users belong to. `role` is its own role. */
type Home = Pick<Provisioned, "database" | "role" | "connections"> & { isWritable: boolean };

/** @throws BasetideError `conflict` on a server that cannot have SQL users */
export async function createSqlUserRole(adminUrl: string, home: Home, user: SqlUserRole): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    const version = await majorVersion(admin);
    if (version < FIRST_MAJOR_VERSION) {
      throw new BasetideError(
        "conflict",
        `The database is on Postgres ${version}, and SQL users need ${FIRST_MAJOR_VERSION} or later: before, a user could change the others' password. The operator can upgrade the server, or move the base to another one`,
      );
    }
    const limited = { ...user, connections: connectionsOfUser(home.connections) };
    await createRole(admin, limited, { inherits: true, also: membership(home, user.role) });
    if (home.isWritable) await admin.unsafe(writableDefault(home.database, user.role, true));
  });
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

/**
 * Ends the sessions of the user and drops it. Objects that it created belong to the database's own role afterwards. A
 * role that no longer exists is no error.
 *
 * @throws BasetideError `replica_busy` if another session holds a lock on an object that the user created. The user
 *   can no longer log in then, and the next call drops it
 */
export async function dropSqlUserRole(
  adminUrl: string,
  { database, role: owner }: Pick<Home, "database" | "role">,
  role: string,
): Promise<void> {
  await withAdmin(databaseUrl(adminUrl, database), async (admin) => {
    const [found] = await admin`select from pg_roles where rolname = ${role}`;
    if (!found) return;
    const [name, heir] = [quoteIdent(role), quoteIdent(owner)];
    await overRaces(() => admin.unsafe(`alter role ${name} nologin`));
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`;
    await admin`select pg_terminate_backend(pid, ${WAIT_MS}) from pg_stat_activity where usename = ${role}`;
    await overRaces(() =>
      admin.begin(async (tx) => {
        await tx.unsafe(`set local lock_timeout = ${WAIT_MS}`);
        await tx.unsafe(`reassign owned by ${name} to ${heir}; drop owned by ${name}; drop role ${name}`);
      }),
    );
  });
}

export interface SqlUserRoleState {
  role: string;
  exists: boolean;
  /** It may log in, and has the rights of the database's role without being able to act as it. */
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
    if ((await majorVersion(admin)) < FIRST_MAJOR_VERSION) return { rows, unknown: [] };
    const known = users.map(({ role }) => role);
    const unknown = (await usersOf(admin, home.role)).filter((role) => !known.includes(role));
    const settable = (await settableLimits(admin)).map((name) => `${name}=${ENFORCED_SETTINGS[name]}`);
    for (const user of users) rows.push({ user, ...(await readRole(admin, home, user.role, settable)) });
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

async function readRole(admin: Sql, home: Home, role: string, settable: string[]): Promise<RoleRow> {
  const until = await pausedUntil(admin, role);
  const [row] = await admin<{ is_member: boolean; limits: string[] | null }[]>`
    select r.rolcanlogin and r.rolinherit and coalesce((
        select bool_or(m.inherit_option) and not bool_or(m.set_option) from pg_auth_members as m
        where m.member = r.oid and m.roleid = to_regrole(quote_ident(${home.role}))), false) as is_member,
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
    const name = quoteIdent(user.role);
    const [found] = await admin`select from pg_roles where rolname = ${user.role}`;
    if (!found) return false;
    await overRaces(() =>
      admin.unsafe(
        `alter role ${name} login inherit; grant ${name} to current_user; ${membership(home, user.role)}`,
      ),
    );
    await limitRole(admin, user.role, connectionsOfUser(home.connections));
    return true;
  });
  if (!exists) return createSqlUserRole(adminUrl, home, user);
  await setPassword(adminUrl, user.role, user.password);
  await setSqlUserWritable(adminUrl, home.database, user.role, home.isWritable);
}

/** Grants again what differs: the options of a grant are replaced. */
function membership({ role: reader }: Pick<Home, "role">, role: string): string {
  return `grant ${quoteIdent(reader)} to ${quoteIdent(role)} with inherit true, set false`;
}

function writableDefault(database: string, role: string, isWritable: boolean): string {
  const alter = `alter role ${quoteIdent(role)} in database ${quoteIdent(database)}`;
  return isWritable
    ? `${alter} set default_transaction_read_only = off`
    : `${alter} reset default_transaction_read_only`;
}
