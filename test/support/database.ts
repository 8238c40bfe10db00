/**
 * Databases for tests: each caller gets its own, and drops it by `await using`. Their owner is the control plane's
 * role, which has no other rights, and no other role may connect.
 */
import postgres from "postgres";
import { inject } from "vitest";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";
import { KNOWN_TYPES } from "./known-types";

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
  await createOwned(adminOfWorker(), name, template);
  const url = urlOf(name);
  const sql = postgres(url, { max: POOL_SIZE, onnotice: () => {}, ...KNOWN_TYPES });
  return {
    url,
    sql,
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 });
      await adminOfWorker().unsafe(`drop database if exists ${name} with (force)`);
    },
  };
}

let template: Promise<string> | undefined;

/** The run's migrated template. */
function controlTemplate(): Promise<string> {
  template ??= findOrCreateTemplate().catch((error: unknown) => {
    template = undefined;
    throw error;
  });
  return template;
}

/**
 * The first caller creates it: test files run in parallel, so under an advisory lock, which ends with the connection, and
 * under a temporary name until it is complete.
 */
async function findOrCreateTemplate(): Promise<string> {
  const name = `bt_${inject("runId")}_template`;
  const draft = `${name}_draft`;
  const admin = connect();
  try {
    await admin`select pg_advisory_lock(hashtext(${name}))`;
    const [found] = await admin`select from pg_database where datname = ${name}`;
    if (!found) {
      await admin.unsafe(`drop database if exists ${draft} with (force)`);
      await createOwned(admin, draft, "template0");
      await migrateControl(urlOf(draft), createLogger("error", "test"));
      await admin.unsafe(`alter database ${draft} rename to ${name}`);
      await admin.unsafe(`alter database ${name} is_template true allow_connections false`);
    }
    return name;
  } finally {
    await admin.end();
  }
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

let admin: postgres.Sql | undefined;

/**
 * This worker's connection to the server's own database. All files of the worker use it: to open one costs as much as
 * what it does.
 */
function adminOfWorker(): postgres.Sql {
  admin ??= connect();
  return admin;
}

function connect(): postgres.Sql {
  return postgres(inject("postgresUrl"), { max: 1, fetch_types: false, onnotice: () => {} });
}
