/** Databases that hold replicas: on a cluster of ours, with a random name and role, or hosted by a customer. */
import type postgres from "postgres";
import type { Actor, Context, Db } from "../../context";
import { BasetideError, conflict, isBasetideError, notFound } from "../../errors";
import type { ServerUrl } from "../../external";
import { newId, rowById } from "../../ids";
import {
  claimSpare,
  connectionsOfUser,
  createConsoleRole,
  databaseUrl,
  dropDatabase,
  endSessionsOf,
  installReplica,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  randomPassword,
  restoreLimits,
  rotatePassword,
  SPARE_SCHEMA,
  setWritable,
} from "../../replica";
import { countChange, recordChange } from "../audit";
import { type Cluster, clusterAdminUrl, installationId, pickCluster } from "./clusters";
import { consoleLogin, knownConsoleLogin } from "./console-role";
import { type Inspection, inspect } from "./external-database";
import { externalServer, parseConnectionTarget } from "./external-url";
import { isControlServer } from "./same-server";
import type { SpareKeeper } from "./spares";
import { sqlUserRoles } from "./sql-user-rows";
import { applyWriteDefaults } from "./sql-user-writes";

export interface Database {
  id: string;
  accountId: string;
  /** Null: hosted by the customer. */
  clusterId: string | null;
  name: string;
  /**
   * The role of the credentials: our role for the customer, or the user of the customer's URL. A pooler may know
   * that user by another name than the server does.
   */
  role: string;
  /** The address that customers connect to. */
  host: string;
  port: number;
  /** Where its cluster's data lies, as pages say it; null if that is not known, or the customer hosts it. */
  location: string | null;
  /** Whether the customer's role may create its own tables and views next to ours. */
  isWritable: boolean;
  /** Connections that the role and the SQL users may open together; meaningless if the customer hosts the database. */
  connections: number;
  /** In a database that the customer hosts: the console reads with a URL of its own, which can only read. */
  hasReader: boolean;
  /** The customer has confirmed that the role of the URL has more rights than Basetide needs. */
  acceptsPrivileges: boolean;
}

export interface Credentials {
  url: string;
  /** A command line for a shell. */
  psql: string;
  host: string;
  port: number;
  database: string;
  user: string;
  password: string;
}

const INSUFFICIENT_PRIVILEGE = "42501";

interface NewDatabase {
  /** Chosen by the operator, to whom no account's limit applies; defaults to one that has room, in `region`. */
  cluster?: Cluster | undefined;
  /** Connections that the role may open. */
  connections?: number | undefined;
  /** Defaults to the account's region. */
  region?: string | undefined;
  /** Nothing is made unless this resolves; what must be read is read meanwhile. */
  checked?: Promise<unknown> | undefined;
}

interface DatabaseContext extends Pick<Context, "db" | "secrets" | "log" | "actor"> {}
export interface CreationContext extends DatabaseContext, Pick<Context, "config"> {
  /** What prepares spare databases in this process, if it does. */
  spares?: Pick<SpareKeeper, "used"> | undefined;
}
/** `config`: the networks that a customer's server may be in. */
type AddressContext = Pick<Context, "config" | "db" | "secrets" | "log">;

/** @throws BasetideError `not_found`, also if it belongs to another account */
export async function getDatabase(db: Db, id: string, accountId?: string): Promise<Database> {
  const own = accountId === undefined ? db`` : db`and d.account_id = ${accountId}`;
  const find = () => db<Database[]>`${selectDatabases(db)} where d.id = ${id} ${own}`;
  return rowById("database", id, find, `There is no database ${id}`);
}

/** The account's databases, in order of creation. */
export async function listDatabases(db: Db, accountId: string): Promise<Database[]> {
  return db<Database[]>`${selectDatabases(db)} where d.account_id = ${accountId} order by d.created_at, d.id`;
}

/**
 * Returns a new database with a read-only role on a cluster of ours, ready to be synced into `schema`: a spare one, or one
 * that is created now.
 *
 * @throws BasetideError `conflict` if the account has reached its limit of databases, or no cluster has room; the error of
 *   `checked`
 */
export async function createHostedDatabase(
  ctx: CreationContext,
  accountId: string,
  schema: string,
  { cluster: chosen, connections = ctx.config.databaseConnections, region, checked }: NewDatabase = {},
): Promise<Database> {
  const [account] = await ctx.db<{ region: string | null }[]>`
    select region from accounts where id = ${accountId}`;
  const cluster = chosen ?? (await pickCluster(ctx, connections, region ?? account?.region ?? undefined));
  const adminUrl = await clusterAdminUrl(ctx, cluster.id);
  const installation = await installationId(ctx.db);
  const named = { ...nameDatabase(), connections };
  const consolePassword = randomPassword();
  const id = newId("database");
  await checked;
  let recorded: Pick<Provisioned, "database" | "role"> | undefined;
  // Before the creation, so that leftovers of a crash are known, and removed as a database without a base.
  async function record(made: Pick<Provisioned, "database" | "role">): Promise<boolean> {
    return ctx.db.begin(async (tx) => {
      if (chosen === undefined) await requireAllowance(tx, ctx.config, accountId);
      const { count } = await tx`
        insert into databases (
          id, account_id, cluster_id, name, role_name, encrypted_password, encrypted_console_password, connection_limit)
        select ${id}, ${accountId}, ${cluster.id}, ${made.database}, ${made.role},
          ${ctx.secrets.encrypt(named.password, `databases.password:${id}`)},
          ${ctx.secrets.encrypt(consolePassword, `databases.console_password:${id}`)}, ${connections}
        where not exists (select from databases where cluster_id is not null and name = ${made.database})`;
      if (count > 0) recorded = made;
      return count > 0;
    });
  }
  try {
    const claim = { password: named.password, consolePassword, connections };
    if (schema === SPARE_SCHEMA && (await claimSpare(adminUrl, installation, claim, record))) {
      ctx.spares?.used();
      return await getDatabase(ctx.db, id);
    }
    await record(named);
    await provisionDatabase(adminUrl, installation, named, {
      atEnd: (admin) => createConsoleRole(admin, { ...named, isWritable: false }, consolePassword),
    });
    await installReplica(databaseUrl(adminUrl, named.database), { schema, role: named.role, isNew: true });
    return await getDatabase(ctx.db, id);
  } catch (error) {
    if (!recorded) throw error;
    await unmake(ctx, adminUrl, id, recorded).catch((dropError: unknown) =>
      ctx.log.error({ error: dropError, databaseId: id }, "dropping a failed new database failed"),
    );
    if (!isBasetideError(error) || error.details?.sqlState !== INSUFFICIENT_PRIVILEGE) throw error;
    ctx.log.error({ error, cluster: cluster.name }, "cluster refused to create a database");
    throw new BasetideError(
      "conflict",
      `The cluster ${cluster.name} does not accept new databases because its role lacks a privilege. The operator's \`doctor\` command names it`,
      { cause: error },
    );
  }
}

/**
 * Locks the account's row, so that concurrent requests are counted one after the other.
 *
 * @throws BasetideError `conflict`
 */
async function requireAllowance(
  tx: postgres.TransactionSql,
  config: Context["config"],
  accountId: string,
): Promise<void> {
  await tx`select from accounts where id = ${accountId} for update`;
  const [has] = await tx<{ databases: number }[]>`
    select count(*)::int as databases from databases where account_id = ${accountId} and cluster_id is not null`;
  if (has!.databases >= config.accountDatabases) {
    throw conflict(
      `This account has ${has!.databases} hosted databases, its maximum. Put the base into one of them, or ask the operator for more (ACCOUNT_DATABASES)`,
    );
  }
}

/** In this order, so that a database that cannot be dropped now remains known. */
async function unmake(
  { db }: DatabaseContext,
  adminUrl: string,
  id: string,
  { database, role }: Pick<Provisioned, "database" | "role">,
): Promise<void> {
  await dropDatabase(adminUrl, database, role);
  await db`delete from databases where id = ${id}`;
}

/**
 * Allows the database's role and its SQL users to create their own tables and views in the schemas of its bases, or
 * revokes that right: objects that they created stay. Our tables stay read-only. Open connections keep their defaults.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts, or on the server of the control plane
 */
export async function setDatabaseWritable(
  ctx: DatabaseContext,
  database: Database,
  isWritable: boolean,
): Promise<Database> {
  if (database.clusterId === null) {
    throw conflict("The customer hosts this database and controls its write access");
  }
  const adminUrl = await clusterAdminUrl(ctx, database.clusterId);
  const url = databaseUrl(adminUrl, database.name);
  // A role that may write is a larger risk than one that only reads, and must not share a server with the control
  // plane.
  if (isWritable && (await isControlServer(ctx.db, url))) {
    throw conflict(
      `${database.name} is on the server of the control plane, where customers are not allowed to write. Move its bases to another cluster first: \`operator cluster add\`, \`operator base move\``,
    );
  }
  const schemas = await ctx.db<{ name: string }[]>`
    select schema_name as name from bases where database_id = ${database.id}`;
  for (const { name } of schemas) await setWritable(url, database.role, name, isWritable);
  await applyWriteDefaults(ctx, { ...database, isWritable });
  await ctx.db.begin(async (tx) => {
    await tx`update databases set is_writable = ${isWritable} where id = ${database.id}`;
    const { accountId, id, name } = database;
    const details = { name, is_writable: isWritable };
    await recordChange(tx, ctx.actor, { accountId, action: "database.writable", subject: id, details });
  });
  ctx.log.info({ databaseId: database.id, isWritable }, "write access to a database changed");
  return getDatabase(ctx.db, database.id);
}

/**
 * Sets how many connections the database's role and its SQL users may open together. Open ones stay, until the watchdog ends those above the
 * limit.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts
 */
export async function setConnectionLimit(
  ctx: DatabaseContext,
  database: Database,
  connections: number,
): Promise<Database> {
  if (database.clusterId === null) {
    throw conflict("The customer hosts this database and controls its limits");
  }
  const adminUrl = await clusterAdminUrl(ctx, database.clusterId);
  await restoreLimits(adminUrl, { role: database.role, connections });
  const console = await knownConsoleLogin(ctx, database);
  const members = [...(await sqlUserRoles(ctx.db, database.id)), ...(console ? [console.role] : [])];
  for (const role of members) {
    await restoreLimits(adminUrl, { role, connections: connectionsOfUser(connections) });
  }
  await ctx.db.begin(async (tx) => {
    await tx`update databases set connection_limit = ${connections} where id = ${database.id}`;
    const { accountId, id, name } = database;
    const change = { accountId, subject: id, details: { name, connections } };
    await recordChange(tx, ctx.actor, { ...change, action: "database.limited" });
  });
  return getDatabase(ctx.db, database.id);
}

/** Returns the URL of that database, with the right to write there. @throws BasetideError `secret_unreadable` */
export async function databaseAdminUrl(ctx: AddressContext, database: Database): Promise<ServerUrl> {
  if (database.clusterId !== null) {
    return databaseUrl(await clusterAdminUrl(ctx, database.clusterId), database.name);
  }
  return externalServer(await externalUrl(ctx, database), ctx.config.privateDestinations);
}

/** The database's own role; undefined if the customer hosts the database, where we have only the customer's role. */
export function readerRoleOf({ clusterId, role }: Database): string | undefined {
  return clusterId === null ? undefined : role;
}

/**
 * Returns the URL with which the console reads that database, at the address that Basetide itself connects to: of a role
 * of its own, or in a database that the customer hosts of the reading URL that the customer has given, and otherwise of
 * the only one.
 *
 * @throws BasetideError `secret_unreadable`
 */
export async function databaseReaderUrl(ctx: AddressContext, database: Database): Promise<ServerUrl> {
  if (database.clusterId === null) {
    const reading = await readingUrl(ctx, database);
    if (reading === undefined) return databaseAdminUrl(ctx, database);
    return externalServer(reading, ctx.config.privateDestinations);
  }
  return loginUrl(ctx, database, await consoleLogin(ctx, database));
}

/** Returns the URL with which a role logs in to a hosted database, at the address that Basetide itself connects to. */
export async function loginUrl(
  ctx: Pick<Context, "db" | "secrets">,
  database: Database,
  { role, password }: Pick<Provisioned, "role" | "password">,
): Promise<string> {
  const url = new URL(databaseUrl(await clusterAdminUrl(ctx, database.clusterId!), database.name));
  url.username = encodeURIComponent(role);
  url.password = encodeURIComponent(password);
  // Settings for the admin's sessions, which the role may not make.
  url.searchParams.delete("options");
  return url.toString();
}

/** Returns the URL that can only read, of a database that the customer hosts; undefined unless they have given one. */
async function readingUrl(ctx: DatabaseContext, database: Database): Promise<string | undefined> {
  const [row] = await ctx.db<{ encrypted: string | null }[]>`
    select encrypted_reader_url as encrypted from databases where id = ${database.id}`;
  return row?.encrypted
    ? ctx.secrets.decrypt(row.encrypted, `databases.reader_url:${database.id}`)
    : undefined;
}

/** Returns the customer's URL of a database that they host. @throws BasetideError `secret_unreadable` */
async function externalUrl(ctx: DatabaseContext, database: Database): Promise<string> {
  const [row] = await ctx.db<{ encrypted_url: string }[]>`
    select encrypted_url from databases where id = ${database.id}`;
  if (!row) throw notFound(`There is no database ${database.id}`);
  return parseConnectionTarget(ctx.secrets.decrypt(row.encrypted_url, `databases.url:${database.id}`)).text;
}

/**
 * Inspects a customer's database as the onboarding does, in its current state.
 *
 * @throws BasetideError `secret_unreadable`
 */
export async function inspectKnown(ctx: AddressContext, database: Database): Promise<Inspection> {
  const [base] = await ctx.db<{ schema: string }[]>`
    select schema_name as schema from bases where database_id = ${database.id} order by created_at limit 1`;
  // It is in use: a role with more rights than needed is a warning.
  return inspect(ctx, await externalUrl(ctx, database), base?.schema ?? "public", true);
}

/** Returns what a SQL client needs. @throws BasetideError `secret_unreadable` */
export async function databaseCredentials(ctx: DatabaseContext, database: Database): Promise<Credentials> {
  if (database.clusterId === null) {
    const url = new URL(await externalUrl(ctx, database));
    return toCredentials(database, decodeURIComponent(url.password), url.search);
  }
  const [row] = await ctx.db<{ encrypted_password: string }[]>`
    select encrypted_password from databases where id = ${database.id}`;
  if (!row) throw notFound(`There is no database ${database.id}`);
  return toCredentials(
    database,
    ctx.secrets.decrypt(row.encrypted_password, `databases.password:${database.id}`),
    "",
  );
}

/** What stands in texts for a password that is not shown. */
export const PASSWORD_PLACEHOLDER = "DB_PASSWORD";

/** The credentials without the password. */
export async function hiddenCredentials(
  ctx: DatabaseContext,
  database: Database,
  user?: { role: string },
): Promise<Credentials> {
  const query = database.clusterId === null ? new URL(await externalUrl(ctx, database)).search : "";
  return toCredentials({ ...database, role: user?.role ?? database.role }, PASSWORD_PLACEHOLDER, query);
}

/**
 * Returns the credentials to a person or program, and records that: one entry per actor and hour.
 *
 * @throws BasetideError `secret_unreadable`
 */
export async function showCredentials(
  ctx: DatabaseContext & { actor: Actor },
  database: Database,
): Promise<Credentials> {
  const { accountId, id, name } = database;
  const change = { accountId, subject: id, details: { name } };
  await countChange(ctx.db, ctx.actor, { ...change, action: "credentials.shown" });
  return databaseCredentials(ctx, database);
}

/**
 * Gives the database's role a new password; the old one no longer works. The console's role gets one when it is next
 * used.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts
 */
export async function rotateCredentials(ctx: DatabaseContext, database: Database): Promise<Credentials> {
  if (database.clusterId === null) {
    throw conflict("You host this database: change the password on your server");
  }
  const { accountId, id, name, clusterId, role } = database;
  const adminUrl = await clusterAdminUrl(ctx, clusterId);
  return ctx.db.begin(async (tx) => {
    // Of two rotations at once, the later one is stored.
    await tx`select from databases where id = ${id} for no key update`;
    // A crash before the commit leaves an unknown password; another rotation repairs that.
    const password = await rotatePassword(adminUrl, role);
    await tx`
      update databases set encrypted_password = ${ctx.secrets.encrypt(password, `databases.password:${id}`)},
        encrypted_console_password = null
      where id = ${id}`;
    const change = { accountId, subject: id, details: { name } };
    await recordChange(tx, ctx.actor, { ...change, action: "credentials.rotated" });
    return toCredentials(database, password, "");
  });
}

/**
 * Ends the connections that were opened with the database's credentials.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts
 */
export async function endDatabaseSessions(ctx: DatabaseContext, database: Database): Promise<void> {
  if (database.clusterId === null) {
    throw conflict("You host this database: end the connections on your server");
  }
  await endSessionsOf(await clusterAdminUrl(ctx, database.clusterId), database.role);
}

/** The query of all databases, without conditions. */
export function selectDatabases(db: Db) {
  return db`
    select d.id, d.account_id as "accountId", d.cluster_id as "clusterId", d.name, d.role_name as role,
      c.location, coalesce(d.external_host, c.public_host) as host, coalesce(d.external_port, c.public_port) as port,
      d.is_writable as "isWritable", d.connection_limit as connections,
      d.encrypted_reader_url is not null as "hasReader", d.accepts_privileges as "acceptsPrivileges"
    from databases as d left join clusters as c on c.id = d.cluster_id`;
}

/** @param database with the role of the credentials, which may be that of a SQL user */
export function toCredentials(database: Database, password: string, query: string): Credentials {
  const { host, port, name, role } = database;
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const login = `${encodeURIComponent(role)}:${encodeURIComponent(password)}`;
  const url = `postgres://${login}@${address}/${encodeURIComponent(name)}${query}`;
  return { url, psql: `psql ${shellQuote(url)}`, host, port, database: name, user: role, password };
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
