/**
 * Brings the control plane's database up to date: runs the migrations of `sql/control/migrations`, in order, each
 * in one transaction, then installs `sql/control/functions` if their text has changed, and closes the database to other
 * roles.
 *
 * Safe when many processes start at once: the runner holds an advisory lock; the others wait and find nothing to
 * do.
 */
import { readdir } from "node:fs/promises";
import { appPath } from "../../app-path";
import type { Db } from "../../context";
import type { Logger } from "../../log";
import { asControlError, closePg, connectPg, requireKeptSessions } from "../../postgres";
import { closeControl } from "./close-control";
import { areFunctionsCurrent, installFunctions } from "./functions";

const MIGRATIONS_DIR = appPath("sql/control/migrations");
const MIGRATIONS_TABLE = "schema_migrations";

/**
 * Runs the pending migrations.
 *
 * @returns the names of the migrations that this call ran
 * @throws BasetideError `control_unavailable` if the database cannot be reached; a failing migration's own error
 *   otherwise
 */
export async function migrateControl(databaseUrl: string, log: Logger): Promise<string[]> {
  let client: PgClient | undefined;
  try {
    // Behind a transaction pooler the runner's lock would stay on the pooler's connection and block the next start.
    await requireKeptSessions(databaseUrl, "DATABASE_URL");
    const connection = await connectPg(databaseUrl, "basetide-migrate");
    client = connection;
    const pending = await pendingNames(async (text) => (await connection.query(text)).rows);
    const names = pending.length > 0 ? await runPending(connection, log) : [];
    await installFunctions(client, log);
    await closeControl(client, log);
    if (names.length > 0) log.info({ migrations: names }, "control plane migrated");
    return names;
  } catch (error) {
    throw asControlError(error);
  } finally {
    if (client) await closePg(client);
  }
}

type PgClient = Awaited<ReturnType<typeof connectPg>>;

/** Few processes migrate: only they load the library, which takes 6 MB. */
async function runPending(dbClient: PgClient, log: Logger): Promise<string[]> {
  const { runner } = await import("node-pg-migrate");
  const done = await runner({
    dbClient,
    dir: MIGRATIONS_DIR,
    ignorePattern: "(?!.*\\.sql$).*",
    migrationsTable: MIGRATIONS_TABLE,
    direction: "up",
    singleTransaction: false,
    advisoryLockMode: "wait",
    logger: {
      debug: () => {},
      info: (message) => log.debug({ detail: message }, "migration step"),
      warn: (message) => log.warn({ detail: message }, "migration warning"),
      error: (message) => log.error({ detail: message }, "migration failed"),
    },
  });
  return done.map((migration) => migration.name);
}

/**
 * Returns what the control plane's database lacks: the names of pending migrations (all of them if it is empty),
 * and `functions` unless this version's or a later version's functions are installed.
 */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const pending = await pendingNames((text) => db.unsafe(text));
  return (await areFunctionsCurrent(db)) ? pending : [...pending, "functions"];
}

async function pendingNames(query: (text: string) => Promise<{ name: string }[]>): Promise<string[]> {
  const files = (await readdir(MIGRATIONS_DIR)).filter((file) => file.endsWith(".sql")).sort();
  const names = files.map((file) => file.slice(0, -".sql".length));
  const tables = await query(`select from pg_class where oid = to_regclass('${MIGRATIONS_TABLE}')`);
  if (tables.length === 0) return names;
  const done = new Set((await query(`select name from ${MIGRATIONS_TABLE}`)).map(({ name }) => name));
  return names.filter((name) => !done.has(name));
}
