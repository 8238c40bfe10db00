/** Installs what a replica needs besides its tables: schemas, state, functions, and the customer's rights. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import postgres from "postgres";
import { postgresLine, WATCHED_BY_SERVER } from "../postgres-line";
import { onReplica, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import { quoteIdent } from "./naming";
import type { Replica } from "./replica";

const template = ["install.sql", "images.sql", "shapes.sql", "link-views.sql", "views.sql", "changes.sql"]
  .map((name) => readFileSync(new URL(`../../sql/replica/${name}`, import.meta.url), "utf8"))
  .join("\n");

/** Tells one version of the template from another. */
const VERSION = createHash("sha256").update(template).digest("hex").slice(0, 16);

/** Brings the replica's functions up to date, if another version of Basetide installed them. */
export async function ensureInstalled(
  replica: Replica,
  target: { url: string; schema: string; role: string },
): Promise<void> {
  const { sql, swap } = replica;
  const [state] = await onReplica(
    () => sql<{ version: string | null }[]>`
      select obj_description(to_regnamespace(${swap}), 'pg_namespace') as version`,
  );
  if (state?.version !== VERSION) await installReplica(target.url, target);
}

/**
 * Installs, or brings up to date, a replica in the database at `databaseUrl`. Idempotent, and safe when several
 * processes do it at once.
 *
 * @param options.schema the customer's schema; ours is `<schema>_swap`
 * @param options.role the customer's role: may read everything in `schema`, also tables made later
 */
export async function installReplica(
  databaseUrl: string,
  options: { schema: string; role: string },
): Promise<void> {
  const { schema, swap } = schemasOf(options.schema);
  const role = quoteIdent(options.role);
  const text = template
    .replaceAll("{{swap_text}}", `'${`${options.schema}_swap`.replaceAll("'", "''")}'`)
    .replaceAll("{{schema}}", schema)
    .replaceAll("{{swap}}", swap);
  const connection = { search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER };
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {}, connection, ...postgresLine() });
  try {
    await onReplica(() =>
      sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended('basetide install', 0))`;
        await tx.unsafe(text);
        await tx`update ${tx.unsafe(swap)}._state set reader = ${options.role}`;
        await tx.unsafe(`comment on schema ${swap} is '${VERSION}'`);
        await tx.unsafe(`
          revoke create on schema ${schema} from public;
          grant usage on schema ${schema} to ${role};
          grant select on all tables in schema ${schema} to ${role};
          alter default privileges in schema ${schema} grant select on tables to ${role};`);
      }),
    );
  } finally {
    await sql.end();
  }
}
