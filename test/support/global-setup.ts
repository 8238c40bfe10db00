/** Runs once per test run: starts the Postgres server that all test files share, and names the run's databases. */
import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { ensureLogin, loginOf, prepareCluster } from "../../core/replica";
import { type ServerUrls, startTestServer, urlsOf } from "./server";

declare module "vitest" {
  export interface ProvidedContext {
    /** A superuser's URL of the server: for the actions of the server's operator. */
    postgresUrl: ServerUrls["superuser"];
    /** URL of the role that owns control planes; it has no other rights. */
    controlUrl: ServerUrls["control"];
    /** Admin URL of the server as a cluster: what the service is given, without superuser rights. */
    clusterUrl: ServerUrls["cluster"];
    /** Every database of this run is named `bt_<runId>_…`. */
    runId: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  const runId = crypto.randomUUID().slice(0, 8);
  const urls = await prepareServer(server.url);
  project.provide("postgresUrl", urls.superuser);
  project.provide("controlUrl", urls.control);
  project.provide("clusterUrl", urls.cluster);
  project.provide("runId", runId);
  return async () => {
    if (server.kind === "given") await dropDatabases(server.url, runId);
    await server.stop();
  };
}

/** Creates the roles that the service uses, as on an operator's server. */
async function prepareServer(url: string): Promise<ServerUrls> {
  const urls = urlsOf(url);
  const control = loginOf(urls.control, "the test's control URL");
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`select pg_advisory_lock(hashtext('basetide test'))`;
  await ensureLogin(sql, control, "");
  await sql.end();
  await prepareCluster(url, loginOf(urls.cluster, "the test's cluster URL"), { isDedicated: true });
  return urls;
}

/** Drops the template, and the databases of tests that were cut short. */
async function dropDatabases(url: string, runId: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const names = await sql<{ datname: string }[]>`
    select datname from pg_database where datname like ${`bt\\_${runId}\\_%`}`;
  for (const { datname } of names) {
    await sql.unsafe(`alter database ${datname} is_template false`);
    await sql.unsafe(`drop database if exists ${datname} with (force)`);
  }
  await sql.end();
}
