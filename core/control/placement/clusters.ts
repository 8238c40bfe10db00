/** Clusters: the Postgres servers that hold replicas. One exists from the start; operators add more. */

import { randomBytes } from "node:crypto";
import type { Sql } from "postgres";
import type { Actor, Context, Db } from "../../context";
import { BasetideError, conflict, invalid, isBasetideError, notFound } from "../../errors";
import { newId } from "../../ids";
import { isUniqueViolation, requireKeptSessions } from "../../postgres";
import { POSTGRES_PORT } from "../../postgres-url";
import { ROLE_PATTERN, withAdmin } from "../../replica";
import { recordChange } from "../audit";

const DEFAULT_CLUSTER = "default";

export interface Cluster {
  id: string;
  name: string;
  region: string;
  /** Where its data lies, as pages say it; null: the operator has not said it. */
  location: string | null;
  publicHost: string;
  publicPort: number;
  state: "active" | "draining";
  /** Number of databases on it. */
  databases: number;
}

type SecretContext = Pick<Context, "db" | "secrets">;

/**
 * Registers the server of REPLICA_URL, or else the control plane's own, as the cluster `default`, and applies
 * changes of the configuration since the last start.
 *
 * @throws BasetideError `secret_unreadable` if SECRET_KEY is not the one that the cluster was saved with,
 *   `config_invalid` without REPLICA_URL if the role of DATABASE_URL cannot create replicas and there is no other
 *   cluster
 */
export async function ensureDefaultCluster(ctx: SecretContext & Pick<Context, "config">): Promise<void> {
  const { config, db, secrets } = ctx;
  const adminUrl = config.replicaUrl ?? config.databaseUrl;
  if (adminUrl === undefined)
    throw new BasetideError("config_invalid", "REPLICA_URL: required without DATABASE_URL");
  await installationId(db);
  if (config.replicaUrl === undefined && !(await mayMakeReplicas(db))) return requireOtherCluster(db);
  const address = publicAddress(adminUrl, { host: config.replicaPublicHost });
  await refuseTransactionPooler(ctx, adminUrl);
  const id = newId("cluster");
  await db`
    insert into clusters (id, name, region, location, encrypted_admin_url, public_host, public_port)
    values (${id}, ${DEFAULT_CLUSTER}, ${config.defaultRegion}, ${config.location},
      ${secrets.encrypt(adminUrl, `clusters.admin_url:${id}`)}, ${address.host}, ${address.port})
    on conflict (name) do nothing`;
  const [saved] = await db<{ id: string; encrypted_admin_url: string }[]>`
    select id, encrypted_admin_url from clusters where name = ${DEFAULT_CLUSTER}`;
  if (!saved)
    throw new BasetideError("internal", "The default cluster does not exist right after it was saved");
  const isSameUrl = secrets.decrypt(saved.encrypted_admin_url, `clusters.admin_url:${saved.id}`) === adminUrl;
  const encrypted = isSameUrl
    ? saved.encrypted_admin_url
    : secrets.encrypt(adminUrl, `clusters.admin_url:${saved.id}`);
  await db`
    update clusters set encrypted_admin_url = ${encrypted}, region = ${config.defaultRegion},
      location = ${config.location}, public_host = ${address.host}, public_port = ${address.port}
    where id = ${saved.id} and (encrypted_admin_url, region, location, public_host, public_port)
      is distinct from (${encrypted}, ${config.defaultRegion}, ${config.location}::text, ${address.host},
        ${address.port}::int)`;
}

/**
 * Checks a URL that is new. A server that cannot be reached now is tried again when it is needed.
 *
 * @throws BasetideError `config_invalid`
 */
async function refuseTransactionPooler({ db, secrets }: SecretContext, adminUrl: string): Promise<void> {
  const [saved] = await db<{ id: string; encrypted_admin_url: string }[]>`
    select id, encrypted_admin_url from clusters where name = ${DEFAULT_CLUSTER}`;
  if (saved && secrets.decrypt(saved.encrypted_admin_url, `clusters.admin_url:${saved.id}`) === adminUrl)
    return;
  try {
    await requireKeptSessions(adminUrl, "REPLICA_URL");
  } catch (error) {
    if (isBasetideError(error, "config_invalid")) throw error;
  }
}

/** Whether the role of DATABASE_URL may create databases and roles; on a server of its own it should not. */
async function mayMakeReplicas(db: Db): Promise<boolean> {
  const [role] = await db<{ may: boolean }[]>`
    select rolsuper or rolcreatedb and rolcreaterole as may from pg_roles where rolname = current_user`;
  return role?.may === true;
}

async function requireOtherCluster(db: Db): Promise<void> {
  const [other] = await db`
    select from clusters where state = 'active' and name <> ${DEFAULT_CLUSTER} limit 1`;
  if (other) return;
  throw new BasetideError(
    "config_invalid",
    "REPLICA_URL is required, because the role of DATABASE_URL is not allowed to create databases and roles. Set it to the URL of a role that is; `operator server prepare replicas` creates one",
  );
}

export interface NewCluster {
  name: string;
  region: string;
  adminUrl: string;
  publicHost?: string | undefined;
  publicPort?: number | undefined;
}

/** @throws BasetideError `invalid_request` for an invalid URL, `already_exists` for a name that is taken */
export async function addCluster(
  ctx: SecretContext & Pick<Context, "actor">,
  cluster: NewCluster,
): Promise<Cluster> {
  const address = publicAddress(cluster.adminUrl, { host: cluster.publicHost, port: cluster.publicPort });
  const id = newId("cluster");
  try {
    await ctx.db.begin(async (tx) => {
      await tx`
        insert into clusters (id, name, region, location, encrypted_admin_url, public_host, public_port)
        values (${id}, ${cluster.name}, ${cluster.region}, ${cluster.region},
          ${ctx.secrets.encrypt(cluster.adminUrl, `clusters.admin_url:${id}`)}, ${address.host}, ${address.port})`;
      const details = { name: cluster.name, region: cluster.region };
      await recordChange(tx, ctx.actor, { accountId: null, action: "cluster.added", subject: id, details });
    });
  } catch (error) {
    if (!isUniqueViolation(error, "clusters_name_key")) throw error;
    throw new BasetideError("already_exists", `A cluster "${cluster.name}" already exists`);
  }
  return clusterByName(ctx.db, cluster.name);
}

/**
 * Gives a cluster another admin URL: its password has changed, or its server has another address. The host and port that
 * customers connect to stay unless they are given.
 *
 * @throws BasetideError `not_found`, `invalid_request` for an invalid URL; `conflict` for the default cluster, or for a
 *   server on which the URL's role may write none of the cluster's databases
 */
export async function changeCluster(
  ctx: SecretContext & Pick<Context, "actor">,
  { name, adminUrl, publicHost, publicPort }: Omit<NewCluster, "region">,
): Promise<Cluster> {
  const { id } = await clusterByName(ctx.db, name);
  if (name === DEFAULT_CLUSTER)
    throw conflict(`The cluster "${name}" follows REPLICA_URL: change that variable`);
  publicAddress(adminUrl, {});
  const databases = await ctx.db<{ name: string }[]>`select name from databases where cluster_id = ${id}`;
  const names = databases.map((database) => database.name);
  const found = await withAdmin(
    adminUrl,
    (admin) => admin`
      select from pg_database where datname = any (${names}) and pg_has_role(current_user, datdba, 'usage') limit 1`,
  );
  if (names.length > 0 && found.length === 0)
    throw conflict(`On that server, the URL's role may write none of the databases of the cluster "${name}"`);
  await ctx.db.begin(async (tx) => {
    await tx`
      update clusters set encrypted_admin_url = ${ctx.secrets.encrypt(adminUrl, `clusters.admin_url:${id}`)},
        public_host = coalesce(${publicHost ?? null}, public_host),
        public_port = coalesce(${publicPort ?? null}::int, public_port)
      where id = ${id}`;
    await recordChange(tx, ctx.actor, {
      accountId: null,
      action: "cluster.changed",
      subject: id,
      details: { name },
    });
  });
  return clusterByName(ctx.db, name);
}

export async function listClusters(db: Db): Promise<Cluster[]> {
  return db<Cluster[]>`${selectClusters(db)} order by c.created_at, c.id`;
}

/** Stops placing new databases on the cluster. @throws BasetideError `not_found` */
export async function drainCluster(db: Db, name: string, actor?: Actor): Promise<Cluster> {
  await db.begin(async (tx) => {
    const [drained] = await tx<{ id: string }[]>`
      update clusters set state = 'draining' where name = ${name} and state <> 'draining' returning id`;
    if (!drained) return;
    const change = {
      accountId: null,
      action: "cluster.drained",
      subject: drained.id,
      details: { name },
    } as const;
    await recordChange(tx, actor, change);
  });
  return clusterByName(db, name);
}

/**
 * Picks the cluster for a new database: the active one with the fewest databases that answers and has connections left, in
 * `region` if one is given.
 *
 * @param needed connections that the database's role may open
 * @throws BasetideError `conflict` if there is none; `replica_unavailable` if none answers
 */
export async function pickCluster(
  ctx: SecretContext & Pick<Context, "config">,
  needed: number,
  region?: string,
): Promise<Cluster> {
  const inRegion = region === undefined ? ctx.db`` : ctx.db`and c.region = ${region}`;
  const clusters = await ctx.db<Cluster[]>`
    ${selectClusters(ctx.db)} where c.state = 'active' ${inRegion} order by databases, c.created_at`;
  const where = region === undefined ? "" : ` in ${region}`;
  if (clusters.length === 0) {
    throw conflict(`No cluster${where} accepts new databases. The operator can add one`);
  }
  const full: string[] = [];
  const unusable: { name: string; error: unknown }[] = [];
  for (const cluster of clusters) {
    const adminUrl = await clusterAdminUrl(ctx, cluster.id);
    try {
      if ((await connectionsLeft(adminUrl, ctx.config.connectionOvercommit)) >= needed) return cluster;
      full.push(cluster.name);
    } catch (error) {
      // The others may have room.
      unusable.push({ name: cluster.name, error });
    }
  }
  if (full.length === 0) throw unusable[0]!.error;
  const others = unusable.length > 0 ? `; not usable: ${unusable.map(({ name }) => name).join(", ")}` : "";
  throw conflict(
    `No cluster${where} has ${needed} connections left for another database (full: ${full.join(", ")}${others}). The operator can add one, or raise its max_connections`,
  );
}

/** @throws BasetideError `not_found`, `secret_unreadable` */
export async function clusterAdminUrl(ctx: SecretContext, clusterId: string): Promise<string> {
  const [row] = await ctx.db<{ encrypted_admin_url: string }[]>`
    select encrypted_admin_url from clusters where id = ${clusterId}`;
  if (!row) throw notFound(`There is no cluster ${clusterId}`);
  return decryptAdminUrl(ctx, clusterId, row.encrypted_admin_url);
}

export function decryptAdminUrl(
  { secrets }: Pick<Context, "secrets">,
  clusterId: string,
  encrypted: string,
): string {
  return secrets.decrypt(encrypted, `clusters.admin_url:${clusterId}`);
}

/** @throws BasetideError `not_found` */
export async function clusterByName(db: Db, name: string): Promise<Cluster> {
  const [cluster] = await db<Cluster[]>`${selectClusters(db)} where c.name = ${name}`;
  if (!cluster) throw notFound(`There is no cluster "${name}"`);
  return cluster;
}

function selectClusters(db: Db) {
  return db`
    select c.id, c.name, c.region, c.location, c.public_host as "publicHost", c.public_port as "publicPort", c.state,
      (select count(*)::int from databases as d where d.cluster_id = c.id) as databases
    from clusters as c`;
}

/** The host and port that customers connect to: as given, or else those of the admin URL. */
function publicAddress(
  adminUrl: string,
  given: { host?: string | undefined; port?: number | undefined },
): { host: string; port: number } {
  const url = URL.parse(adminUrl);
  if (!url || !/^postgres(ql)?:$/.test(url.protocol) || url.hostname === "") {
    throw invalid(
      "The admin URL of a cluster must have the form postgres://user:password@host:port/database",
    );
  }
  return {
    host: given.host ?? url.hostname.replace(/^\[|\]$/g, ""),
    port: given.port ?? (Number(url.port) || POSTGRES_PORT),
  };
}

/**
 * Returns how many connections of a cluster are not promised to customers' roles yet.
 *
 * Counts on the server itself, over all roles of hosted databases, because two clusters may be one server, and
 * another installation may use it too. Connections that the server reserves belong to the service.
 *
 * @param overcommit how many times each connection may be promised
 * @throws BasetideError `replica_unavailable`
 */
async function connectionsLeft(adminUrl: string, overcommit: number): Promise<number> {
  return withAdmin(adminUrl, async (admin) => {
    const [row] = await admin<{ usable: number; promised: number }[]>`
      select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true)::int, 0) as usable,
        (select coalesce(sum(greatest(rolconnlimit, 0)), 0)::int from pg_roles
          where rolname ~ ${ROLE_PATTERN}) as promised`;
    return Math.floor(row!.usable * overcommit) - row!.promised;
  });
}

/**
 * Records the timeline of a cluster's server, for all leases on it. An idle base writes nothing, and would notice
 * late that a promoted standby lacks some of its rows. A timeline does not change while a connection to a primary lasts.
 * If the server does not reveal it, the recorded one stays.
 */
export async function recordTimeline(db: Db, clusterId: string, admin: Sql): Promise<void> {
  const timeline = await admin<{ timeline: string }[]>`
    select left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) as timeline`.then(
    ([row]) => row!.timeline,
    () => null,
  );
  if (timeline === null) return;
  await db`update clusters set timeline = ${timeline} where id = ${clusterId} and timeline is distinct from ${timeline}`;
}

/** The id of this installation, since others may use the same clusters. A restored dump has the same id. */
export async function installationId(db: Db): Promise<string> {
  await db`insert into installation (id) values (${randomBytes(12).toString("hex")}) on conflict do nothing`;
  const [row] = await db<{ id: string }[]>`select id from installation`;
  return row!.id;
}
