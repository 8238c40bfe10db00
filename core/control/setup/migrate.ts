/**
 * Brings the control plane's database up to date: runs the migrations of `sql/control/migrations`, in order, each in one
 * transaction, then installs `sql/control/functions` where their text has changed.
 *
 * Safe when many processes start at once: the runner holds an advisory lock; the others wait and find nothing to do.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { runner } from "node-pg-migrate";
import type { Db } from "../../context";
import type { Logger } from "../../log";
import { asControlError, connectPg, requireKeptSessions } from "../../postgres";
import { areFunctionsCurrent, installFunctions } from "./functions";

const MIGRATIONS_DIR = join(import.meta.dirname, "../../../sql/control/migrations");
const MIGRATIONS_TABLE = "schema_migrations";

/**
 * Runs what has not run yet.
 *
 * @returns the names of the migrations that this call ran
 * @throws BasetideError `control_unavailable` if the database cannot be reached; a failing migration's own error otherwise
 */
export async function migrateControl(databaseUrl: string, log: Logger): Promise<string[]> {
  let client: Awaited<ReturnType<typeof connectPg>> | undefined;
  try {
    // The runner's lock would stay behind on a connection of the pooler's, and the next start would wait for it.
    await requireKeptSessions(databaseUrl, "DATABASE_URL");
    client = await connectPg(databaseUrl, "basetide-migrate");
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
    const names = done.map((migration) => migration.name);
    if (names.length > 0) log.info({ migrations: names }, "control plane migrated");
    return names;
  } catch (error) {
    throw asControlError(error);
  } finally {
    await client?.end();
  }
}

/**
 * What the control plane's database lacks: names of migrations of this version that have not run, all of them when it is
 * empty, and `functions` where those are not this version's or a later one's.
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
