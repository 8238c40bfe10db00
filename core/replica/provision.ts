/**
 * Databases and roles on a replica cluster: one database and one login role per replica.
 *
 * I8. A role may connect to its own database and read; nothing else, in no other database of the cluster.
 */
import { randomBytes } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { postgresLine, WATCHED_BY_SERVER } from "../postgres-line";
import { replicaError, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { quoteIdent } from "./naming";
import { scramVerifier } from "./scram";

/** Limits of a customer's role: an analyst's mistake must not take the cluster with it. */
const ROLE_SETTINGS = {
  statement_timeout: "10min",
  idle_in_transaction_session_timeout: "5min",
  default_transaction_read_only: "on",
  lock_timeout: "30s",
};
const ROLE_CONNECTIONS = 50;

/** Functions that write, be it only to the log, or could block a sync, and that Postgres lets everybody call. */
export const FORBIDDEN_FUNCTIONS = "^(lo_|lowrite$|pg_(try_)?advisory_|pg_notify$|pg_logical_emit_message$)";

/** What a database's comment begins with; the installation and a time follow. */
export const LABEL = "basetide";

/** SQLSTATEs of a database changed (internal_error, "tuple concurrently updated") or dropped by somebody else. */
const CONCURRENT_CHANGE = ["XX000", "3D000"];
const MAX_ATTEMPTS = 20;

export interface Provisioned {
  database: string;
  role: string;
  password: string;
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
  await guardDatabase(adminUrl, made);
  return made;
}

export async function createRole(
  admin: Sql,
  { role, password }: Omit<Provisioned, "database">,
): Promise<void> {
  const settings = Object.entries(ROLE_SETTINGS)
    .map(([name, value]) => `alter role ${quoteIdent(role)} set ${name} = '${value}';`)
    .join(" ");
  await admin.unsafe(
    `create role ${quoteIdent(role)} login noinherit connection limit ${ROLE_CONNECTIONS} password '${scramVerifier(password)}'; ${settings}`,
  );
}

export async function createDatabase(admin: Sql, database: string, installation?: string): Promise<void> {
  await admin.unsafe(`create database ${quoteIdent(database)} template template0 encoding 'UTF8'`);
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

/** Lets the role connect to the database, and nobody else; and nobody call what writes or blocks there. Idempotent. */
export async function guardDatabase(
  adminUrl: string,
  { database, role }: Omit<Provisioned, "password">,
): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await overRaces(() => revokePublicConnect(admin));
    await overRaces(() =>
      admin.unsafe(
        `revoke all on database ${quoteIdent(database)} from public;
         grant connect on database ${quoteIdent(database)} to ${quoteIdent(role)};`,
      ),
    );
  });
  await withAdmin(databaseUrl(adminUrl, database), revokeForbiddenFunctions);
}

/** Gives the role a new password, and returns it. Open sessions stay. */
export async function rotatePassword(adminUrl: string, role: string): Promise<string> {
  const password = randomPassword();
  await setPassword(adminUrl, role, password);
  return password;
}

/** From now on the role has this password, whatever it had before. */
export async function setPassword(adminUrl: string, role: string, password: string): Promise<void> {
  await withAdmin(adminUrl, (admin) =>
    admin.unsafe(`alter role ${quoteIdent(role)} password '${scramVerifier(password)}'`),
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
  const statements = isWritable
    ? `grant create on schema ${place} to ${name};
       grant temporary on database ${database} to ${name};
       alter role ${name} in database ${database} set default_transaction_read_only = off;`
    : `revoke create on schema ${place} from ${name};
       revoke temporary on database ${database} from ${name};
       alter role ${name} in database ${database} reset default_transaction_read_only;`;
  await withAdmin(databaseUrl, (admin) => overRaces(() => admin.unsafe(statements)));
}

/** Drops a database and its role, ending whoever is connected. What is gone already is no error. */
export async function dropDatabase(adminUrl: string, database: string, role: string): Promise<void> {
  await withAdmin(adminUrl, async (admin) => {
    await admin.unsafe(`drop database if exists ${quoteIdent(database)} with (force)`);
    await admin.unsafe(`drop role if exists ${quoteIdent(role)}`);
  });
}

/** Drops a replica's schemas, and leaves the rest of the database, which it shares with others. */
export async function removeReplica(databaseUrl: string, schema: string): Promise<void> {
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

/** Takes from PUBLIC the right to connect to any database that is there now. */
async function revokePublicConnect(admin: Sql): Promise<void> {
  const open = await admin<{ datname: string }[]>`
    select datname from pg_database
    where datallowconn and has_database_privilege('public', oid, 'CONNECT')`;
  for (const { datname } of open) {
    await admin.unsafe(`revoke connect, temporary on database ${quoteIdent(datname)} from public`);
  }
}

/** Does `work` once more when somebody else changed the rights of a database, or dropped it, at the same moment. */
async function overRaces(work: () => Promise<unknown>): Promise<void> {
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
      loop
        execute format('revoke execute on function %s from public', signature);
      end loop;
    exception when insufficient_privilege then null;
    end $$`);
}

export async function withAdmin<T>(url: string, work: (admin: Sql) => Promise<T>): Promise<T> {
  const connection = { search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER };
  const admin = postgres(url, {
    max: 1,
    onnotice: () => {},
    connect_timeout: 10,
    connection,
    ...postgresLine(),
  });
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
