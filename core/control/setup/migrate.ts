/**
 * Brings the control plane's database up to date: runs the migrations of `sql/control/migrations`, in order, each
 * in one transaction, then installs `sql/control/functions` if their text has changed, and closes the database to other
 * roles.
 *
 * Safe when many processes start at once: the runner holds an advisory lock; the others wait and find nothing to
 * do.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Db } from "../../context";
import type { Logger } from "../../log";
import { asControlError, closePg, connectPg, requireKeptSessions } from "../../postgres";
import { closeControl } from "./close-control";
import { areFunctionsCurrent, installFunctions } from "./functions";

const MIGRATIONS_DIR = join(import.meta.dirname, "../../../sql/control/migrations");
const MIGRATIONS_TABLE = "schema_migrations";

/**
 * Runs the pending migrations.
 *
 * @returns the names of the migrations that this call ran
 * @throws BasetideError `control_unavailable` if the database cannot be reached; a failing migration's own error
 *   otherwise
 */
export async function migrateControl(databaseUrl: string, log: Logger): Promise<string[]> {
  let client: Awaited<ReturnType<typeof connectPg>> | undefined;
  try {
    // Behind a transaction pooler the runner's lock would stay on the pooler's connection and block the next start.
    await requireKeptSessions(databaseUrl, "DATABASE_URL");
    client = await connectPg(databaseUrl, "basetide-migrate");
    // Few processes migrate, and none needs the library afterwards.
    const { runner } = await import("node-pg-migrate");
    const done = await runner({
      dbClient: client,
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
    await installFunctions(client, log);
    await closeControl(client, log);
    const names = done.map((migration) => migration.name);
    if (names.length > 0) log.info({ migrations: names }, "control plane migrated");
    return names;
  } catch (error) {
    throw asControlError(error);
  } finally {
    if (client) await closePg(client);
  }
}

/**
 * Returns what the control plane's database lacks: the names of pending migrations (all of them if it is empty),
 * and `functions` unless this version's or a later version's functions are installed.
 */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const files = (await readdir(MIGRATIONS_DIR)).filter((file) => file.endsWith(".sql")).sort();
  const names = files.map((file) => file.slice(0, -".sql".length));
  const [table] = await db`select to_regclass(${MIGRATIONS_TABLE}) as oid`;
  if (table?.oid === null) return [...names, "functions"];
  const rows = await db<{ name: string }[]>`select name from ${db(MIGRATIONS_TABLE)}`;
  const done = new Set(rows.map((row) => row.name));
  const pending = names.filter((name) => !done.has(name));
  return (await areFunctionsCurrent(db)) ? pending : [...pending, "functions"];
}
