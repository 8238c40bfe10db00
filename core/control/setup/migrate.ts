/**
 * Brings the control plane's database up to date: runs the migrations of `sql/control/migrations`, in order, each
 * in one transaction, then installs `sql/control/functions` if their text has changed, and closes the database to other
 * roles.
 *
 * Safe when many processes start at once: the runner holds an advisory lock; the others wait and find nothing to
 * do.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
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
    const names = await runPending(client);
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

async function runPending(client: pg.Client): Promise<string[]> {
  // Until the connection is closed.
  await client.query("select pg_advisory_lock(hashtextextended('basetide migrations', 0))");
  await client.query(`
    create table if not exists ${MIGRATIONS_TABLE} (id serial primary key, name varchar(255) not null, run_on timestamp not null)`);
  const { rows } = await client.query<{ name: string }>(`select name from ${MIGRATIONS_TABLE}`);
  const done = new Set(rows.map(({ name }) => name));
  const pending = (await migrationNames()).filter((name) => !done.has(name));
  for (const name of pending) {
    const text = await readFile(join(MIGRATIONS_DIR, `${name}.sql`), "utf8");
    // Statements that are sent together are one transaction.
    await client.query(`${text};\ninsert into ${MIGRATIONS_TABLE} (name, run_on) values ('${name}', now())`);
  }
  return pending;
}

/** In the order in which they run. */
async function migrationNames(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_DIR);
  return files
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .sort();
}

/**
 * Returns what the control plane's database lacks: the names of pending migrations (all of them if it is empty),
 * and `functions` unless this version's or a later version's functions are installed.
 */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const names = await migrationNames();
  const [table] = await db`select to_regclass(${MIGRATIONS_TABLE}) as oid`;
  if (table?.oid === null) return [...names, "functions"];
  const rows = await db<{ name: string }[]>`select name from ${db(MIGRATIONS_TABLE)}`;
  const done = new Set(rows.map((row) => row.name));
  const pending = names.filter((name) => !done.has(name));
  return (await areFunctionsCurrent(db)) ? pending : [...pending, "functions"];
}
