/**
 * Databases that hold replicas: on a cluster of ours, made with a random name and role, or hosted by a customer.
 */
import type { Context, Db } from "../context";
import { BasetideError } from "../errors";
import {
  databaseUrl,
  dropDatabase,
  installReplica,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  rotatePassword,
  setWritable,
} from "../replica";
import { noteChange } from "./audit";
import { type Cluster, clusterAdminUrl, pickCluster } from "./clusters";
import { parsePlace } from "./external-database";
import { newId } from "./ids";
import { installationId } from "./installation";

export interface Database {
  id: string;
  accountId: string;
  /** Null: hosted by the customer. */
  clusterId: string | null;
  name: string;
  /** Who reads there: our role for the customer, or the role of the URL that they gave. */
  role: string;
  /** Where customers connect to. */
  host: string;
  port: number;
  /** May the customer's role make tables and views of its own beside ours? */
  isWritable: boolean;
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

type DatabaseContext = Pick<Context, "db" | "secrets" | "log" | "actor">;

/** @throws BasetideError `not_found`, also when it is another account's */
export async function getDatabase(db: Db, id: string, accountId?: string): Promise<Database> {
  const [database] = await db<Database[]>`
    ${selectDatabases(db)} where d.id = ${id} ${accountId === undefined ? db`` : db`and d.account_id = ${accountId}`}`;
  if (!database) throw new BasetideError("not_found", `There is no database ${id}`);
  return database;
}

/** The account's databases, in the order they were made. */
export async function listDatabases(db: Db, accountId: string): Promise<Database[]> {
  return db<Database[]>`${selectDatabases(db)} where d.account_id = ${accountId} order by d.created_at, d.id`;
}

/**
 * Makes a database and its read-only role on a cluster of ours, ready to be synced into `schema`.
 *
 * @param chosen the cluster; one that has room, in the account's region, unless given
 */
export async function createHostedDatabase(
  ctx: DatabaseContext,
  accountId: string,
  schema: string,
  chosen?: Cluster,
): Promise<Database> {
  const [account] = await ctx.db<{ region: string | null }[]>`
    select region from accounts where id = ${accountId}`;
  const cluster = chosen ?? (await pickCluster(ctx.db, account?.region ?? undefined));
  const adminUrl = await clusterAdminUrl(ctx, cluster.id);
  const named = nameDatabase();
  const id = newId("database");
  // Before it is made: whatever a crash leaves of it is known, and cleared away as a database without a base.
  await ctx.db`
    insert into databases (id, account_id, cluster_id, name, role_name, sealed_password)
    values (${id}, ${accountId}, ${cluster.id}, ${named.database}, ${named.role},
      ${ctx.secrets.seal(named.password, passwordContext(id))})`;
  try {
    await provisionDatabase(adminUrl, await installationId(ctx.db), named);
    await installReplica(databaseUrl(adminUrl, named.database), { schema, role: named.role });
    return await getDatabase(ctx.db, id);
  } catch (error) {
    await unmake(ctx, adminUrl, id, named).catch((dropError: unknown) =>
      ctx.log.error({ error: dropError, databaseId: id }, "database left behind"),
    );
    throw error;
  }
}

/** In this order: what cannot be dropped now stays known. */
async function unmake(
  { db }: DatabaseContext,
  adminUrl: string,
  id: string,
  { database, role }: Provisioned,
): Promise<void> {
  await dropDatabase(adminUrl, database, role);
  await db`delete from databases where id = ${id}`;
}

/**
 * Lets the database's role make tables and views of its own in the schemas of its bases, or takes that right back:
 * what it made stays. Our tables stay read-only to it. Connections that are open keep their defaults.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts
 */
export async function setDatabaseWritable(
  ctx: DatabaseContext,
  database: Database,
  isWritable: boolean,
): Promise<Database> {
  if (database.clusterId === null) {
    throw new BasetideError("conflict", "This database is hosted by the customer, who says who writes there");
  }
  const url = await databaseAdminUrl(ctx, database);
  const schemas = await ctx.db<{ name: string }[]>`
    select schema_name as name from bases where database_id = ${database.id}`;
  for (const { name } of schemas) await setWritable(url, database.role, name, isWritable);
  await ctx.db.begin(async (tx) => {
    await tx`update databases set is_writable = ${isWritable} where id = ${database.id}`;
    const { accountId, id, name } = database;
    const details = { name, is_writable: isWritable };
    await noteChange(tx, ctx.actor, { accountId, action: "database.writable", subject: id, details });
  });
  ctx.log.info({ databaseId: database.id, isWritable }, "database writable or not");
  return getDatabase(ctx.db, database.id);
}

/** A URL with the rights to write into that very database. @throws BasetideError `secret_unreadable` */
export async function databaseAdminUrl(ctx: DatabaseContext, database: Database): Promise<string> {
  if (database.clusterId !== null) {
    return databaseUrl(await clusterAdminUrl(ctx, database.clusterId), database.name);
  }
  const [row] = await ctx.db<{ sealed_url: string }[]>`
    select sealed_url from databases where id = ${database.id}`;
  if (!row) throw new BasetideError("not_found", `There is no database ${database.id}`);
  return parsePlace(ctx.secrets.open(row.sealed_url, urlContext(database.id))).url;
}

/** What a SQL client needs. @throws BasetideError `secret_unreadable` */
export async function databaseCredentials(ctx: DatabaseContext, database: Database): Promise<Credentials> {
  if (database.clusterId === null) {
    const url = new URL(await databaseAdminUrl(ctx, database));
    return toCredentials(database, decodeURIComponent(url.password), url.search);
  }
  const [row] = await ctx.db<{ sealed_password: string }[]>`
    select sealed_password from databases where id = ${database.id}`;
  if (!row) throw new BasetideError("not_found", `There is no database ${database.id}`);
  return toCredentials(database, ctx.secrets.open(row.sealed_password, passwordContext(database.id)), "");
}

/**
 * Gives the database's role a new password; the old one opens nothing from then on.
 *
 * @throws BasetideError `conflict` for a database that the customer hosts
 */
export async function rotateCredentials(ctx: DatabaseContext, database: Database): Promise<Credentials> {
  if (database.clusterId === null) {
    throw new BasetideError("conflict", "This database is hosted by you: change its password there");
  }
  // A crash between these two leaves a password that nobody knows; rotating again mends it.
  const password = await rotatePassword(await clusterAdminUrl(ctx, database.clusterId), database.role);
  await ctx.db.begin(async (tx) => {
    await tx`
      update databases set sealed_password = ${ctx.secrets.seal(password, passwordContext(database.id))}
      where id = ${database.id}`;
    const { accountId, id, name } = database;
    const change = { accountId, subject: id, details: { name } };
    await noteChange(tx, ctx.actor, { ...change, action: "credentials.rotated" });
  });
  return toCredentials(database, password, "");
}

/** Where the sealed password of a database is bound to. */
export function passwordContext(databaseId: string): string {
  return `databases.password:${databaseId}`;
}

/** Where the sealed URL of a customer's own database is bound to. */
export function urlContext(databaseId: string): string {
  return `databases.url:${databaseId}`;
}

function selectDatabases(db: Db) {
  return db`
    select d.id, d.account_id as "accountId", d.cluster_id as "clusterId", d.name, d.role_name as role,
      coalesce(d.external_host, c.public_host) as host, coalesce(d.external_port, c.public_port) as port,
      d.is_writable as "isWritable"
    from databases as d left join clusters as c on c.id = d.cluster_id`;
}

function toCredentials(database: Database, password: string, query: string): Credentials {
  const { host, port, name, role } = database;
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const login = `${encodeURIComponent(role)}:${encodeURIComponent(password)}`;
  const url = `postgres://${login}@${address}/${encodeURIComponent(name)}${query}`;
  return { url, psql: `psql ${shellQuote(url)}`, host, port, database: name, user: role, password };
}

function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
