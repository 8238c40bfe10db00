/**
 * Installs the control plane's SQL functions: all files of `sql/control/functions`, whenever their text changes.
 *
 * They are not part of the migrations, so that each function has one file with its current definition.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { appPath } from "../../app-path";
import type { Db } from "../../context";
import type { Logger } from "../../log";
import { isTemplateOutdated, templateVersion } from "../../postgres";

const FUNCTIONS_DIR = appPath("sql/control/functions");
/** Raised with every released change of the functions. */
const REVISION = 6;

const text = readdirSync(FUNCTIONS_DIR)
  .sort()
  .map((file) => readFileSync(join(FUNCTIONS_DIR, file), "utf8"))
  .join("\n");
const VERSION = templateVersion(REVISION, text);

/** Whether this version's functions, or a later version's, are installed. */
export async function areFunctionsCurrent(db: Db): Promise<boolean> {
  const [exists] = await db`select to_regclass('installed_functions') is not null as yes`;
  if (!exists?.yes) return false;
  const [installed] = await db<{ version: string }[]>`select version from installed_functions`;
  return !isTemplateOutdated(installed?.version, VERSION);
}

/**
 * Installs them in one transaction unless they are current, and drops those of an earlier version that were removed
 * or have other parameters now. Safe to run concurrently.
 */
export async function installFunctions(client: pg.Client, log: Logger): Promise<void> {
  if (!isTemplateOutdated((await installed(client)).version, VERSION)) return;
  await client.query("begin");
  try {
    await client.query("select pg_advisory_xact_lock(hashtextextended('basetide functions', 0))");
    const before = await installed(client);
    if (isTemplateOutdated(before.version, VERSION)) {
      // They call each other, in any order of the files.
      await client.query("set local check_function_bodies = off");
      await client.query(text);
      const { rows } = await client.query<{ signature: string }>(CREATED_HERE);
      const signatures = rows.map((row) => row.signature);
      for (const signature of before.signatures) {
        if (!signatures.includes(signature)) await client.query(`drop function if exists ${signature}`);
      }
      await client.query("delete from installed_functions");
      await client.query("insert into installed_functions (version, signatures) values ($1, $2)", [
        VERSION,
        signatures,
      ]);
      log.info({ version: VERSION }, "control plane functions installed");
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/** The functions that this transaction created or replaced. */
const CREATED_HERE = `
  select oid::regprocedure::text as signature from pg_proc
  where pronamespace = current_schema()::regnamespace and xmin = pg_current_xact_id()::xid
  order by 1`;

async function installed(client: pg.Client): Promise<{ version?: string; signatures: string[] }> {
  const { rows } = await client.query<{ version: string; signatures: string[] }>(
    "select version, signatures from installed_functions",
  );
  return rows[0] ?? { signatures: [] };
}
