/**
 * Databases for tests: each caller gets its own, and drops it by `await using`. Their owner is the control plane's
 * role, which has no other rights, and no other role may connect.
 */
import postgres from "postgres";
import { inject } from "vitest";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";

export interface TestDatabase {
  url: string;
  /** A small pool of connections to it. */
  sql: postgres.Sql;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Connections of a test's own pool. */
const POOL_SIZE = 4;

/** Creates an empty database. */
export function freshDatabase(): Promise<TestDatabase> {
  return createFrom("template0");
}

/** Creates a database with the control plane's migrations applied. */
export async function controlDatabase(): Promise<TestDatabase> {
  return createFrom(await controlTemplate());
}

async function createFrom(template: string): Promise<TestDatabase> {
  const name = `bt_${inject("runId")}_${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
  await asAdmin((admin) => createOwned(admin, name, template));
  const url = urlOf(name);
  const sql = postgres(url, { max: POOL_SIZE, onnotice: () => {} });
  return {
    url,
    sql,
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 });
      await asAdmin((admin) => admin.unsafe(`drop database if exists ${name} with (force)`));
    },
  };
}

/**
 * The run's migrated template. The first caller creates it: test files run in parallel, so under an advisory lock, and
 * under a temporary name until it is complete.
 */
function controlTemplate(): Promise<string> {
  const template = `bt_${inject("runId")}_template`;
  const draft = `${template}_draft`;
  return asAdmin(async (admin) => {
    await admin`select pg_advisory_lock(hashtext(${template}))`;
    const [found] = await admin`select from pg_database where datname = ${template}`;
    if (!found) {
      await admin.unsafe(`drop database if exists ${draft} with (force)`);
      await createOwned(admin, draft, "template0");
      await migrateControl(urlOf(draft), createLogger("error", "test"));
      await admin.unsafe(`alter database ${draft} rename to ${template}`);
      await admin.unsafe(`alter database ${template} is_template true allow_connections false`);
    }
    return template;
  });
}

async function createOwned(admin: postgres.Sql, name: string, template: string): Promise<void> {
  const owner = new URL(inject("controlUrl")).username;
  // Without fsync, copying files costs half as much as writing each block to the WAL.
  await admin.unsafe(`create database ${name} template ${template} owner ${owner} strategy file_copy`);
  await admin.unsafe(`revoke all on database ${name} from public`);
}

function urlOf(database: string): string {
  const url = new URL(inject("controlUrl"));
  url.pathname = `/${database}`;
  return url.href;
}

/** Runs `work` on one connection to the server's own database. Ending the connection releases the advisory lock. */
async function asAdmin<T>(work: (admin: postgres.Sql) => Promise<T>): Promise<T> {
  const admin = postgres(inject("postgresUrl"), { max: 1, onnotice: () => {} });
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}
