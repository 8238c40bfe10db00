/**
 * The servers of one version: one for the control plane, and one for replicas that other applications also use; and for
 * each cell, the roles and databases of each purpose, with the URLs by which the service reaches them.
 */
import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { createAuthority } from "../../core/http";
import { scratchFolder } from "../support/scratch";
import { pgBouncer } from "../support/servers/pgbouncer";
import { PASSWORD, type PostgresServer, postgresServer } from "../support/servers/postgres-server";
import type { PostgresVersion } from "../support/servers/postgres-versions";
import { tlsRelay } from "../support/servers/tls-relay";
import type { Cell, Rights, Way } from "./cells";

/** The suffix that the relay's clients add to a role's name, as with Supabase's pooler. */
const TENANT = ".abcdefghij";
/** The replica's schema in a customer's own database. */
export const SCHEMA = "airtable";

/** Enough for a worker, a proxy and a console together, and the operator's command line. PgBouncer's default is 20. */
const POOL_SIZE = "60";

const ATTRIBUTES: Record<Rights, string> = {
  superuser: "superuser",
  "createdb createrole": "createdb createrole",
  owner: "",
};

export interface Servers extends AsyncDisposable {
  control: PostgresServer;
  replicas: PostgresServer;
  /** The file with the authority of the relays' certificates. */
  authorityFile: string;
  /** @returns what another application on the replicas' server can no longer do */
  canary(): Promise<string[]>;
}

/** The databases of one cell's service. */
export interface Places extends AsyncDisposable {
  controlUrl: string;
  /** The same, directly: for cells whose kind of connection is refused. */
  plainControlUrl: string;
  clusterUrl: string;
  plainClusterUrl: string;
  ownUrl: string;
  /** Directly to the customer's own database, as a superuser. */
  ownAdminUrl: string;
}

export async function startServers(version: PostgresVersion): Promise<Servers> {
  await using releases = new AsyncDisposableStack();
  const [control, replicas] = await Promise.all([postgresServer({ version }), postgresServer({ version })]);
  releases.use(control);
  releases.use(replicas);
  const folder = scratchFolder("matrix");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const authorityFile = join(folder, "authority.pem");
  writeFileSync(authorityFile, authority.certificate);
  await replicas.role("crm");
  await replicas.role("grafana");
  await replicas.run(["create database crm owner crm"]);
  const kept = releases.move();
  return {
    control,
    replicas,
    authorityFile,
    canary: () => otherApplication(replicas),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const authority = createAuthority("Authority of the matrix");

/** Creates the roles and databases of a cell, and the proxies in front of them. */
export async function openPlaces(servers: Servers, cell: Cell): Promise<Places> {
  await using releases = new AsyncDisposableStack();
  const { control, replicas } = servers;
  const tag = randomBytes(4).toString("hex");
  const [controlRole, clusterRole, ownRole] = [`control_${tag}`, `cluster_${tag}`, `own_${tag}`];
  const attributes = ATTRIBUTES[cell.rights];
  await control.role(controlRole, attributes);
  await control.run([`create database ${controlRole} owner ${controlRole}`]);
  await replicas.role(clusterRole, attributes);
  await replicas.role(ownRole, attributes);
  await replicas.run([`create database ${ownRole}`]);
  await replicas.run(ownRights(cell.rights, ownRole), ownRole);
  const [toControl, toReplicas] = [
    await openWay(control, cell.way, releases),
    await openWay(replicas, cell.way, releases),
  ];
  const kept = releases.move();
  return {
    controlUrl: toControl(control.as(controlRole, controlRole)),
    plainControlUrl: control.as(controlRole, controlRole),
    clusterUrl: toReplicas(replicas.as(clusterRole)),
    plainClusterUrl: replicas.as(clusterRole),
    ownUrl: toReplicas(replicas.as(ownRole, ownRole)),
    ownAdminUrl: replicas.as("postgres", ownRole),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The owner of one schema, and of the one that tables are built in, has no other rights in the database. */
function ownRights(rights: Rights, role: string): string[] {
  const schemas = [SCHEMA, `${SCHEMA}_swap`].map((name) => `create schema ${name} authorization ${role}`);
  return rights === "owner" ? schemas : [`grant create on database ${role} to ${role}`];
}

/** Opens a connection path to the server. @returns a function that converts a URL of the server to it */
async function openWay(
  server: PostgresServer,
  way: Way,
  releases: AsyncDisposableStack,
): Promise<(url: string) => string> {
  if (way === "direct") return (url) => url;
  if (way === "tls alias") {
    const certificate = authority.issue(["localhost", "127.0.0.1"]);
    const alias = (user: string) => user.replace(TENANT, "");
    const relay = releases.use(await tlsRelay(server, { certificate, alias }));
    return (url) => {
      const aliased = new URL(relay.over(url));
      aliased.username += TENANT;
      return aliased.href;
    };
  }
  const mode = way === "pgbouncer session" ? "session" : "transaction";
  const pooler = releases.use(await pgBouncer(server, { mode, settings: { default_pool_size: POOL_SIZE } }));
  return pooler.over;
}

/** Another application: its role has only the rights that Postgres gives to every role. */
async function otherApplication(server: PostgresServer): Promise<string[]> {
  const lost: string[] = [];
  const tried: [string, string, string][] = [
    ["crm", "crm", "create table if not exists deals (id int); insert into deals values (1)"],
    ["grafana", "crm", "create temporary table seen (id int)"],
    ["grafana", "postgres", "select count(*) from pg_tables"],
  ];
  for (const [role, database, statement] of tried) {
    const sql = postgres(server.as(role, database), { max: 1, onnotice: () => {} });
    await sql
      .unsafe(statement)
      .catch((error: Error) => lost.push(`${role} on ${database}: ${error.message}`));
    await sql.end({ timeout: 1 });
  }
  return lost;
}

export { PASSWORD };
