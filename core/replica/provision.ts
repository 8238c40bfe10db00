/**
 * Databases and roles on a replica cluster: one database and one login role per replica.
 *
 * I8. A role may connect to its own database and read; nothing else, in no other database of the cluster.
 */
import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import type { ServerUrl } from "../external";
import { connectServer, WATCHED_BY_SERVER } from "../postgres";
import { replicaError, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { quoteIdent } from "./naming";
import { DEFAULT_CONNECTIONS, ENFORCED_SETTINGS, ROLE_DEFAULTS } from "./role-limits";
import { runWithPassword } from "./role-password";

/**
 * Functions that write, be it only to the log, could block a sync, or use up a transaction id, and that Postgres lets
 * every role call.
 */
export const FORBIDDEN_FUNCTIONS =
  "^(lo_|lowrite$|pg_(try_)?advisory_|pg_notify$|pg_logical_emit_message$|txid_current$|pg_current_xact_id$)";

/** The database that replicas are copied from, on a server that was prepared: `prepareCluster`. */
export const TEMPLATE_DATABASE = "basetide_template";

/** Names of customers' roles: `nameDatabase`. */
export const ROLE_PATTERN = "^bt_[0-9a-f]{16}$";

/** What a database's comment begins with; the installation and a time follow. */
export const LABEL = "basetide";

/** SQLSTATE of a setting that the admin may not set for a role. */
const NO_RIGHT = "42501";
/** SQLSTATEs of a database changed (internal_error, "tuple concurrently updated") or dropped by somebody else. */
const CONCURRENT_CHANGE = ["XX000", "3D000"];
const MAX_ATTEMPTS = 20;
const INSUFFICIENT_PRIVILEGE = "42501";

export interface Provisioned {
  database: string;
  role: string;
  password: string;
  /** Connections that the role may open; `DEFAULT_CONNECTIONS` unless given. */
  connections?: number | undefined;
}

/** Names for a database and its role that nobody else has, and a password. */
export function nameDatabase(): Provisioned {
  return { database: `bt_${randomName()}`, role: `bt_${randomName()}`, password: randomPassword() };
}

/**
 * Creates a database and a read-only role for it.
 *
 * @param installation whose they are, on a cluster that others may use too
 */
export async function provisionDatabase(
  adminUrl: string,
  installation?: string,
  made = nameDatabase(),
): Promise<Provisioned> {
  await withAdmin(adminUrl, async (admin) => {
    await createRole(admin, made);
    await createDatabase(admin, made.database, installation);
  });
  await lockDownDatabase(adminUrl, made);
  return made;
}

export async function createRole(
  admin: Sql,
  { role, password, connections }: Omit<Provisioned, "database">,
): Promise<void> {
  const name = quoteIdent(role);
  // Members of a role see its sessions and may end them. On Postgres 16 and later the admin becomes one without that.
  await runWithPassword(
    admin,
    password,
    (secret) => `create role ${name} login noinherit password '${secret}'; grant ${name} to current_user`,
  );
  await limitRole(admin, role, connections);
}

/** Sets the limits of a customer's role; those that the server keeps from its admin are left out. Idempotent. */
async function limitRole(admin: Sql, role: string, connections: number = DEFAULT_CONNECTIONS): Promise<void> {
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

export async function createDatabase(admin: Sql, database: string, installation?: string): Promise<void> {
  // Who may connect to the template is an admin that the server was prepared for: others could not use a copy.
  const [prepared] = await admin`
    select from pg_database
    where datname = ${TEMPLATE_DATABASE} and datistemplate and has_database_privilege(oid, 'connect')`;
  const template = prepared ? TEMPLATE_DATABASE : "template0";
  await admin.unsafe(`create database ${quoteIdent(database)} template ${template} encoding 'UTF8'`);
  if (installation !== undefined) await labelDatabase(admin, database, installation);
}

/** Writes on the database whose it is, and when that was written, by the server's clock. */
async function labelDatabase(admin: Sql, database: string, installation: string): Promise<void> {
  const [row] = await admin<{ now: Date }[]>`select now() as now`;
  const label = `${LABEL} ${installation} ${row!.now.toISOString()}`;
  await overRaces(() => admin.unsafe(`comment on database ${quoteIdent(database)} is '${label}'`));
}

export async function labelHosted(adminUrl: string, database: string, installation: string): Promise<void> {
  await withAdmin(adminUrl, (admin) => labelDatabase(admin, database, installation));
}

/**
 * Lets only the role connect to the database, and no role call what writes or blocks there. Other databases of the
 * server are not ours to close: `doctor` reports those that are open. Idempotent.
 */
export async function lockDownDatabase(
  adminUrl: string,
  { database, role }: Omit<Provisioned, "password">,
): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await overRaces(() =>
      admin.unsafe(
        `revoke all on database ${quoteIdent(database)} from public;
         grant connect on database ${quoteIdent(database)} to ${quoteIdent(role)};`,
      ),
    );
  });
  await withAdmin(databaseUrl(adminUrl, database), async (sql) => {
    // Before version 15 every role may create there. Where it is not ours, this changes nothing.
    await sql`
      do $$ begin
        if to_regnamespace('public') is not null then
          revoke create on schema public from public;
        end if;
      end $$`;
    await revokeForbiddenFunctions(sql);
  });
}

/** Gives the role a new password, and returns it. Open sessions stay. */
export async function rotatePassword(adminUrl: string, role: string): Promise<string> {
  const password = randomPassword();
  await setPassword(adminUrl, role, password);
  return password;
}

/**
 * Ends all sessions of the role. An admin with CREATEROLE alone is a member of the role while this runs: only members
 * may end another role's sessions.
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

/** From now on the role has this password, whatever it had before. */
export async function setPassword(adminUrl: string, role: string, password: string): Promise<void> {
  await withAdmin(adminUrl, (admin) =>
    runWithPassword(admin, password, (secret) => `alter role ${quoteIdent(role)} password '${secret}'`),
  );
}

/**
 * Lets a customer's role make tables and views of its own in `schema`, and temporary ones, or takes that right back.
 * Our tables stay ours: it may read them and nothing else. What it made stays its own either way.
 */
export async function setWritable(
  databaseUrl: string,
  role: string,
  schema: string,
  isWritable: boolean,
): Promise<void> {
  const [name, place] = [quoteIdent(role), quoteIdent(schema)];
  const database = quoteIdent(decodeURIComponent(new URL(databaseUrl).pathname.slice(1)));
  const language = `
    do $$ begin
      if has_language_privilege('plpgsql', 'usage with grant option') then
        ${isWritable ? "grant" : "revoke"} usage on language plpgsql ${isWritable ? "to" : "from"} ${name};
      end if;
    end $$;`;
  const statements = isWritable
    ? `grant create on schema ${place} to ${name};
       grant temporary on database ${database} to ${name};
       alter role ${name} in database ${database} set default_transaction_read_only = off;`
    : `revoke create on schema ${place} from ${name};
       revoke temporary on database ${database} from ${name};
       alter role ${name} in database ${database} reset default_transaction_read_only;`;
  await withAdmin(databaseUrl, (admin) => overRaces(() => admin.unsafe(statements + language)));
}

/**
 * Drops a database and its role, ending the sessions there. What is gone already is no error.
 *
 * @throws BasetideError `replica_busy` while somebody is connected whose session the admin may not end
 */
export async function dropDatabase(adminUrl: string, database: string, role: string): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    const drop = (options: string) =>
      admin.unsafe(`drop database if exists ${quoteIdent(database)} ${options}`);
    await drop("with (force)").catch(async (error: { code?: string }) => {
      if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
      // Whoever is no superuser may not force an autovacuum away: a plain drop does that by itself, and waits for it.
      await endSessionsIn(admin, database);
      await drop("");
    });
    await admin.unsafe(`drop role if exists ${quoteIdent(role)}`);
  });
}

/** Ends the sessions in the database that the admin may end: its own, and those of roles that it has made. */
async function endSessionsIn(admin: Sql, database: string): Promise<void> {
  await admin`
    with ours as materialized (
      select pid from pg_stat_activity
      where datname = ${database} and usesysid is not null and pg_has_role(usesysid, 'usage'))
    select pg_terminate_backend(pid) from ours`;
}

/** Drops a replica's schemas, and leaves the rest of the database, which it shares with others. */
export async function removeReplica(databaseUrl: ServerUrl, schema: string): Promise<void> {
  const { schema: shown, swap } = schemasOf(schema);
  await withAdmin(databaseUrl, (admin) =>
    admin.unsafe(`drop schema if exists ${shown} cascade; drop schema if exists ${swap} cascade`),
  );
}

/** `adminUrl`, but of another database on the same server. */
export function databaseUrl(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.toString();
}

/** Does `work` again when another session changed the rights of a database, or dropped it, at the same moment. */
export async function overRaces(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await work();
      return;
    } catch (error) {
      const isRace = CONCURRENT_CHANGE.includes((error as { code?: string }).code ?? "");
      if (!isRace || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/** Managed servers keep these from their admin: then a read-only role is still bound by its grants. */
async function revokeForbiddenFunctions(sql: Sql): Promise<void> {
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
    exception when insufficient_privilege then null;
    end $$`);
}

export async function withAdmin<T>(url: ServerUrl, work: (admin: Sql) => Promise<T>): Promise<T> {
  const connection = { search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER };
  const admin = connectServer(url, { max: 1, onnotice: () => {}, connect_timeout: 10, connection });
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

/** 192 bits in base64url: nothing in it needs escaping in a URL, a shell or SQL. */
function randomPassword(): string {
  return randomBytes(24).toString("base64url");
}
