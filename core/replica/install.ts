/** Installs the parts of a replica other than its tables: schemas, state, functions, and the customer's grants. */
import { readFileSync } from "node:fs";
import type postgres from "postgres";
import { appPath } from "../app-path";
import { isBasetideError } from "../errors";
import type { ServerUrl } from "../external";
import { ARRAY_TYPES, isNewer, isTemplateOutdated, templateVersion, WATCHED_BY_SERVER } from "../postgres";
import { onReplica, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { ensureReaders, grantReads } from "./database-roles";
import { overRaces, databaseUrl as urlOf, withAdmin } from "./provision";
import type { Replica } from "./replica";
import { type ServerUse, serverPool } from "./server-pools";
import { writeSchemasOf } from "./write-schemas";

const template = [
  "own-tables.sql",
  "install.sql",
  "damage.sql",
  "row-images.sql",
  "shapes.sql",
  "merge-columns.sql",
  "published.sql",
  "compare-rows.sql",
  "fill-columns.sql",
  "merge.sql",
  "drop-columns.sql",
  "aliases.sql",
  "link-views.sql",
  "write-views.sql",
  "foreign-code.sql",
  "catalog-readers.sql",
  "needs.sql",
  "column-parts.sql",
  "kept-tables.sql",
  "remake.sql",
  "views.sql",
  "changes.sql",
  "indexes.sql",
  "handover.sql",
  "pins.sql",
]
  .map((name) => readFileSync(appPath("sql/replica", name), "utf8"))
  .join("\n");

/** Raised with every release that changes the template. */
const REVISION = 5;
export const INSTALLED_VERSION = templateVersion(REVISION, template);

/** Longest wait for a lock: readers that come after us wait behind us. */
const LOCK_TIMEOUT_MS = 500;
/** Tries to install while another session holds a lock, with about as long a pause between them. */
const LOCK_TRIES = 20;

/** The relations besides the tables: these in the customer's schema, the next list in ours. */
export const OWN_RELATIONS = ["_sync_meta", "__sync_meta__", "_sync_issues"];
/** Views of two of them, and all that the template creates by itself. */
const SWAP_RELATIONS = [
  "_sync_meta",
  "_sync_issues",
  ...template
    .matchAll(/^create (?:table|sequence) if not exists \{\{swap\}\}\.(\w+)/gm)
    .map(([, name]) => name!),
];

interface InstallOptions {
  schema: string;
  role?: string | undefined;
  isNew?: boolean;
}

/** Upgrades the replica's functions if an older version of Basetide installed them, and restores dropped relations. */
export async function ensureInstalled(
  replica: Replica,
  target: { url: ServerUrl; schema: string; role?: string | undefined },
): Promise<void> {
  const { sql, schema, swap } = replica;
  const own = [
    ...OWN_RELATIONS.map((name) => `${schema}.${name}`),
    ...SWAP_RELATIONS.map((name) => `${swap}.${name}`),
  ];
  const [state] = await onReplica(
    () => sql<{ version: string | null; missing: boolean }[]>`
      select obj_description(to_regnamespace(${swap}), 'pg_namespace') as version,
        exists (select from unnest(${own}::text[]) as o (name) where to_regclass(o.name) is null) as missing`,
  );
  if (isTemplateOutdated(state?.version, INSTALLED_VERSION) || state?.missing)
    await installReplica(target.url, { ...target, use: "sync" });
}

/**
 * Installs or upgrades a replica in the database at `databaseUrl`. Idempotent, and safe when several processes do it
 * concurrently. Functions of a newer version of Basetide are left as they are.
 *
 * @param options.schema the customer's schema; ours is `<schema>_swap`
 * @param options.role the database's own role, which with the others of the database may read all that is ours in
 *   `schema`, including future tables. Absent, or ours, if the customer hosts the database
 * @param options.isNew the database has just been created: what its template has brought is not installed again
 * @param options.use whose connections it takes; the admin's unless given
 * @throws BasetideError `destination_invalid` if an object of somebody else has one of our names, `replica_busy` if
 *   another session holds a lock on an object of ours for many seconds
 */
export async function installReplica(
  databaseUrl: ServerUrl,
  options: InstallOptions & { use?: ServerUse },
): Promise<void> {
  const connection = {
    search_path: SAFE_SEARCH_PATH,
    lock_timeout: LOCK_TIMEOUT_MS,
    ...WATCHED_BY_SERVER,
  };
  const { sql } = serverPool(
    databaseUrl,
    { max: 1, onnotice: () => {}, connection, types: ARRAY_TYPES, fetch_types: false },
    { use: options.use ?? "admin" },
  );
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await onReplica(() => sql.begin((tx) => installIn(tx, options)));
      } catch (error) {
        if (attempt === LOCK_TRIES || !isBasetideError(error, "replica_busy")) throw error;
        await Bun.sleep(LOCK_TIMEOUT_MS * (0.5 + Math.random()));
      }
    }
  } finally {
    await sql.end();
  }
}

/** The same in a transaction, for its current role. */
export async function installIn(tx: postgres.TransactionSql, options: InstallOptions): Promise<void> {
  const { swap } = schemasOf(options.schema);
  // Poolers may have dropped the connection's own setting. Bodies are compiled when they are first called: checking all
  // of them here is a third of the cost of installing.
  await tx.unsafe(`
    set local search_path = ${SAFE_SEARCH_PATH};
    set local lock_timeout = ${LOCK_TIMEOUT_MS};
    set local check_function_bodies = off`);
  await tx`select pg_advisory_xact_lock(hashtextextended('basetide install', 0))`;
  const [installed] = await tx<{ version: string | null }[]>`
    select obj_description(to_regnamespace(${swap}), 'pg_namespace') as version`;
  const isInstalled = options.isNew && installed?.version === INSTALLED_VERSION;
  if (!isInstalled && !isNewer(installed?.version, INSTALLED_VERSION)) {
    await tx.unsafe(templateFor(options.schema));
    await tx.unsafe(`comment on schema ${swap} is '${INSTALLED_VERSION}'`);
  }
  const [us] = await tx<{ name: string }[]>`select current_user::text as name`;
  if (options.role === undefined || options.role === us!.name) {
    await tx`update ${tx.unsafe(swap)}._state set reader = current_user`;
    return;
  }
  await ensureReaders(tx, options.role);
  await grantReads(tx, options.schema, options.role);
}

/** In one pass: each would make another text of 300 kB. */
function templateFor(name: string): string {
  const { schema, swap } = schemasOf(name);
  const { write, own } = writeSchemasOf(name);
  const swapText = `'${`${name}_swap`.replaceAll("'", "''")}'`;
  const values: Record<string, string> = { schema, swap, write, write_own: own, swap_text: swapText };
  return template.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole);
}

/** Gives the readers' role the rights in all replicas of the database that its own role has. Idempotent. */
export async function installReaders(
  adminUrl: string,
  { database, role }: { database: string; role: string },
): Promise<void> {
  await withAdmin(urlOf(adminUrl, database), (sql) =>
    overRaces(() =>
      sql.begin(async (tx) => {
        await tx.unsafe(`set local search_path = ${SAFE_SEARCH_PATH}`);
        await tx`select pg_advisory_xact_lock(hashtextextended('basetide install', 0))`;
        const schemas = await tx<{ name: string }[]>`
          select nspname as name from pg_namespace
          where to_regclass(format('%I._state', nspname || '_swap')) is not null order by 1`;
        await ensureReaders(tx, role);
        for (const { name } of schemas) await grantReads(tx, name, role);
      }),
    ),
  );
}
