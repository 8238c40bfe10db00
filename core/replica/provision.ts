/**
 * Manages databases and roles on a replica cluster: one database and one login role per replica.
 *
 * I8. A role may connect to its own database and read; it has no other right, and none in another database of the
 * cluster.
 */
import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import type { ServerUrl } from "../external";
import { ARRAY_TYPES, WATCHED_BY_SERVER } from "../postgres";
import { replicaError, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import {
  consoleRoleOf,
  ensureReaders,
  readersOf,
  revokedOf,
  shareOwn,
  usersOf,
  writesOwnerOf,
} from "./database-roles";
import { quoteIdent } from "./naming";
import { DEFAULT_CONNECTIONS, ENFORCED_SETTINGS, ROLE_DEFAULTS } from "./role-limits";
import { runWithPassword } from "./role-password";
import { serverPool } from "./server-pools";
import { writeSchemasOf } from "./write-schemas";

/**
 * Functions that write (even if only to the log), could block a sync, or use up a transaction id, and that Postgres
 * lets every role call.
 */
export const FORBIDDEN_FUNCTIONS =
  "^(lo_|lowrite$|pg_(try_)?advisory_|pg_notify$|pg_logical_emit_message$|txid_current$|pg_current_xact_id$)";

/** The database that replicas are copied from on a prepared server: `prepareCluster`. */
export const TEMPLATE_DATABASE = "basetide_template";

/** Prefix of a database's comment; the installation and a time follow. */
export const LABEL = "basetide";

/** SQLSTATE, also of a setting that the admin may not set for a role. */
const NO_RIGHT = "42501";
/**
 * SQLSTATEs of what another session changed (internal_error, "tuple concurrently updated"), or changes in another order, or of
 * a database or a table that it dropped.
 */
const CONCURRENT_CHANGE = ["XX000", "40P01", "3D000", "42P01"];
const MAX_ATTEMPTS = 20;

export interface Provisioned {
  database: string;
  role: string;
  password: string;
  /** Connections that the role may open; default `DEFAULT_CONNECTIONS`. */
  connections?: number | undefined;
}

/** Returns unique names for a database and its role, and a password. */
export function nameDatabase(): Provisioned {
  return { database: `bt_${randomName()}`, role: `bt_${randomName()}`, password: randomPassword() };
}

/**
 * Creates a database and a read-only role for it.
 *
 * @param installation the owner, on a cluster that several installations may share
 * @param also.ofRole statements that run with the creation of the role, all or none
 * @param also.atEnd runs at the end, on the same connection
 */
export async function provisionDatabase(
  adminUrl: string,
  installation?: string,
  made = nameDatabase(),
  also: { ofRole?: string; atEnd?: (admin: Sql) => Promise<void> } = {},
): Promise<Provisioned> {
  const isLocked = await withAdmin(adminUrl, async (admin) => {
    await createRole(admin, made, also.ofRole);
    const isLockedInside = await createDatabase(admin, made.database, installation);
    await lockOut(admin, made);
    await also.atEnd?.(admin);
    return isLockedInside;
  });
  if (!isLocked) await lockDownInside(adminUrl, made.database);
  return made;
}

/** @param also statements that run with the creation, all or none */
export async function createRole(
  admin: Sql,
  { role, password, connections }: Omit<Provisioned, "database">,
  also = "",
): Promise<void> {
  const name = quoteIdent(role);
  // Members of a role see its sessions and may end them. On Postgres 16 and later the admin is a member without the
  // grant.
  await runWithPassword(
    admin,
    password,
    (secret) =>
      `create role ${name} login inherit password '${secret}'; grant ${name} to current_user; ${also}`,
  );
  await limitRole(admin, role, connections);
}

/** Sets the limits of a customer's role, except those that the server's admin may not set. Idempotent. */
export async function limitRole(
  admin: Sql,
  role: string,
  connections: number = DEFAULT_CONNECTIONS,
): Promise<void> {
  const alter = `alter role ${quoteIdent(role)}`;
  const defaults = Object.entries(ROLE_DEFAULTS).map(([name, value]) => `${alter} set ${name} = '${value}';`);
  await admin.unsafe(`${alter} connection limit ${connections}; ${defaults.join(" ")}`);
  for (const [name, value] of Object.entries(ENFORCED_SETTINGS)) {
    await admin.unsafe(`${alter} set ${name} = '${value}'`).catch((error: { code?: string }) => {
      if (error.code !== NO_RIGHT) throw error;
    });
  }
}

/** Sets the limits of a role again, and lets the admin see and end its sessions. */
export async function restoreLimits(
  adminUrl: string,
  { role, connections }: Omit<Provisioned, "database" | "password">,
): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await admin.unsafe(`grant ${quoteIdent(role)} to current_user`);
    await limitRole(admin, role, connections);
  });
}

/**
 * @returns whether it is a copy of the prepared template, which is locked down inside. Only a superuser could add what an
 *   outdated one lacks: then, false
 */
export async function createDatabase(admin: Sql, database: string, installation?: string): Promise<boolean> {
  const copy = (template: string) =>
    admin.unsafe(`create database ${quoteIdent(database)} template ${template} encoding 'UTF8'`);
  // The template may be replaced meanwhile.
  const isLocked = await overRaces(async () => {
    // Its owner is the admin that the server was prepared for, and owns what is copied: another could not use it. Postgres
    // lets no other copy it, except a superuser. Its comment has its version: without one, a person has made it.
    const [prepared] = await admin<{ is_locked: boolean }[]>`
      select not (select rolsuper from pg_roles where rolname = current_user) as is_locked from pg_database
      where datname = ${TEMPLATE_DATABASE} and datdba = to_regrole(quote_ident(current_user))
        and shobj_description(oid, 'pg_database') is not null`;
    if (prepared) {
      try {
        await copy(TEMPLATE_DATABASE);
        return prepared.is_locked;
      } catch (error) {
        // Meanwhile it has become another's.
        if ((error as { code?: string }).code !== NO_RIGHT) throw error;
      }
    }
    await copy("template0");
    return false;
  });
  if (installation !== undefined) await labelDatabase(admin, database, installation);
  return isLocked;
}

/** Writes to the database's comment which installation owns it and since when, by the server's clock. */
async function labelDatabase(admin: Sql, database: string, installation: string): Promise<void> {
  const [row] = await admin<{ now: Date }[]>`select now() as now`;
  const label = `${LABEL} ${installation} ${row!.now.toISOString()}`;
  await overRaces(() => admin.unsafe(`comment on database ${quoteIdent(database)} is '${label}'`));
}

export async function labelHosted(adminUrl: string, database: string, installation: string): Promise<void> {
  await withAdmin(adminUrl, (admin) => labelDatabase(admin, database, installation));
}

/**
 * Lets only the role connect to the database, and forbids it PL/pgSQL and the functions that write or block. Other databases of the
 * server are not ours to lock down: `doctor` reports those that are open. Idempotent.
 */
export async function lockDownDatabase(
  adminUrl: string,
  { database, role }: Omit<Provisioned, "password">,
): Promise<void> {
  await withAdmin(adminUrl, (admin) => lockOut(admin, { database, role }));
  await lockDownInside(adminUrl, database);
}

/** Lets only the role and the other readers of the database connect to it. */
async function lockOut(admin: Sql, { database, role }: Omit<Provisioned, "password">): Promise<void> {
  await ensureReaders(admin, role);
  const [name, own, readers] = [database, role, readersOf(role)].map(quoteIdent);
  await overRaces(() =>
    admin.unsafe(`
      revoke all on database ${name} from public;
      grant connect on database ${name} to ${own}, ${readers}`),
  );
}

async function lockDownInside(adminUrl: string, database: string): Promise<void> {
  await withAdmin(databaseUrl(adminUrl, database), async (sql) => {
    // Before version 15 every role may create objects in `public`. If the schema is not ours, this changes nothing.
    await sql`
      do $$ begin
        if to_regnamespace('public') is not null then
          revoke create on schema public from public;
        end if;
      end $$`;
    await revokeForbidden(sql);
  });
}

/** Gives the role a new password, and returns it. Open sessions stay. */
export async function rotatePassword(adminUrl: string, role: string): Promise<string> {
  const password = randomPassword();
  await setPassword(adminUrl, role, password);
  return password;
}

/**
 * Ends all sessions of the role. An admin that has only CREATEROLE is a member of the role while this runs: only
 * members may end another role's sessions.
 */
export async function endSessionsOf(adminUrl: string, role: string): Promise<void> {
  await withAdmin(adminUrl, (admin) =>
    admin.begin(async (tx) => {
      const [me] = await tx<{ mayEnd: boolean }[]>`
        select pg_has_role(current_user, ${role}, 'usage') as "mayEnd"`;
      const name = quoteIdent(role);
      if (!me!.mayEnd) await tx.unsafe(`grant ${name} to current_user with inherit true, set false`);
      await tx`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`;
      if (!me!.mayEnd) await tx.unsafe(`revoke ${name} from current_user`);
    }),
  );
}

/** Replaces the role's password. */
export async function setPassword(adminUrl: string, role: string, password: string): Promise<void> {
  await withAdmin(adminUrl, (admin) =>
    runWithPassword(admin, password, (secret) => `alter role ${quoteIdent(role)} password '${secret}'`),
  );
}

/**
 * Lets the roles of a database create their own tables and views in `schema`, and temporary ones, or revokes that
 * right. They may still only read our tables. The objects that they created stay their own either way. Functions are
 * for the database's own role: another's function runs with the rights of the role that calls it.
 */
export async function setWritable(
  databaseUrl: string,
  role: string,
  schema: string,
  isWritable: boolean,
): Promise<void> {
  const [name, readers, place] = [role, readersOf(role), schema].map(quoteIdent);
  const database = quoteIdent(decodeURIComponent(new URL(databaseUrl).pathname.slice(1)));
  const languages = `
    do $$
    declare
      language text;
    begin
      foreach language in array array['plpgsql', 'sql'] loop
        if has_language_privilege(language, 'usage with grant option') then
          execute format('${isWritable ? "grant usage on language %s to" : "revoke usage on language %s from"} ${name}', language);
        end if;
      end loop;
    end $$;`;
  const statements = isWritable
    ? `grant create on schema ${place} to ${readers};
       grant temporary on database ${database} to ${readers};
       ${shareOwn(place!, role)}
       alter role ${name} in database ${database} set default_transaction_read_only = off;`
    : `revoke create on schema ${place} from ${name}, ${readers};
       revoke temporary on database ${database} from ${name}, ${readers};
       alter role ${name} in database ${database} reset default_transaction_read_only;`;
  await withAdmin(databaseUrl, async (admin) => {
    await ensureReaders(admin, role);
    await overRaces(() => admin.unsafe(statements + languages));
  });
}

/**
 * Drops a database, its role and its SQL users, and ends the sessions there. Objects that no longer exist are no error.
 *
 * @param users roles of its SQL users; those that are members of its readers' role are found without it
 * @throws BasetideError `replica_busy` while a session is connected that the admin may not end
 */
export async function dropDatabase(
  adminUrl: string,
  database: string,
  role: string,
  users: string[] = [],
): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    const revoked = await revokedOf(admin, role);
    const named = [...users, ...(await usersOf(admin, role)), ...revoked];
    const ours = [consoleRoleOf(role), writesOwnerOf(role, database), role, readersOf(role)];
    const roles = new Set([...named, ...ours]);
    const drop = (options: string) =>
      admin.unsafe(`drop database if exists ${quoteIdent(database)} ${options}`);
    await drop("with (force)").catch(async (error: { code?: string }) => {
      if (error.code !== NO_RIGHT) throw error;
      // Only a superuser may end an autovacuum by force. A plain drop cancels it by itself, and waits for it.
      await endSessionsIn(admin, database);
      await drop("");
    });
    for (const one of roles) await admin.unsafe(`drop role if exists ${quoteIdent(one)}`);
  });
}

/** Ends the sessions in the database that the admin may end: its own, and those of roles that it created. */
async function endSessionsIn(admin: Sql, database: string): Promise<void> {
  await admin`
    with ours as materialized (
      select pid from pg_stat_activity
      where datname = ${database} and usesysid is not null and pg_has_role(usesysid, 'usage'))
    select pg_terminate_backend(pid) from ours`;
}

/** Drops a replica's schemas, and leaves the rest of the database, which is shared. */
export async function removeReplica(databaseUrl: ServerUrl, schema: string): Promise<void> {
  const { schema: shown, swap } = schemasOf(schema);
  const { write, own } = writeSchemasOf(schema);
  await withAdmin(databaseUrl, async (admin) => {
    const [writes] = await admin`select where to_regclass(${`${own}.endpoint`}) is not null`;
    await admin.unsafe(`
      drop schema if exists ${shown} cascade; drop schema if exists ${swap} cascade;
      ${writes ? `drop schema if exists ${write} cascade; drop schema ${own} cascade` : ""}`);
  });
}

/** Returns `adminUrl` with another database on the same server. */
export function databaseUrl(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.toString();
}

/** Repeats `work` if another session changed the rights of a database, or dropped it, concurrently. */
export async function overRaces<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isRace = CONCURRENT_CHANGE.includes((error as { code?: string }).code ?? "");
      if (!isRace || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/**
 * The same as in the template of a prepared server. Managed servers do not let their admin revoke these: then grants
 * alone limit a read-only role.
 */
async function revokeForbidden(sql: Sql): Promise<void> {
  await sql.unsafe(`
    do $$
    declare
      signature regprocedure;
    begin
      for signature in
        select p.oid from pg_proc as p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.proname ~ '${FORBIDDEN_FUNCTIONS}'
          and has_function_privilege('public', p.oid, 'execute')
      loop
        execute format('revoke execute on function %s from public', signature);
      end loop;
      if (select rolsuper from pg_roles where rolname = current_user) then
        revoke usage on language plpgsql, sql from public;
      end if;
    exception when insufficient_privilege then null;
    end $$`);
}

/** Runs `work` on a connection of its own, which may have to wait until the server has room for it. */
export async function withAdmin<T>(url: ServerUrl, work: (admin: Sql) => Promise<T>): Promise<T> {
  const connection = { search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER };
  const types = { types: ARRAY_TYPES, fetch_types: false };
  const options = { max: 1, onnotice: () => {}, connect_timeout: 10, connection, ...types };
  const { sql: admin } = serverPool(url, options, { use: "admin" });
  try {
    return await work(admin);
  } catch (error) {
    throw replicaError(error);
  } finally {
    await admin.end({ timeout: 5 });
  }
}

function randomName(): string {
  return randomBytes(8).toString("hex");
}

/** 192 bits in base64url, which needs no escaping in a URL, a shell or SQL. */
export function randomPassword(): string {
  return randomBytes(24).toString("base64url");
}
