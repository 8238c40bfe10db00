/** Once per test run: the Postgres server that all test files share, and a name for what the run makes on it. */
import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { startTestServer } from "./server";

declare module "vitest" {
  export interface ProvidedContext {
    /** A superuser's URL of the server. */
    postgresUrl: string;
    /** Every database of this run is named `bt_<runId>_…`. */
    runId: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startTestServer();
  const runId = crypto.randomUUID().slice(0, 8);
  project.provide("postgresUrl", server.url);
  project.provide("runId", runId);
  return async () => {
    if (server.kind === "given") await dropDatabases(server.url, runId);
    await server.stop();
  };
}

/** The template, and what a test that was cut short left behind. */
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
