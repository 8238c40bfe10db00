/**
 * Grants a role exactly the columns that it may read in a schema of a hosted database.
 *
 * I8. What it may not read is denied by the server, whatever the SQL is.
 */
import { SAFE_SEARCH_PATH } from "./connection";
import { quoteIdent } from "./naming";
import { overRaces, withAdmin } from "./provision";

export interface ReadableRelation {
  name: string;
  /** Null: all of them. */
  columns: readonly string[] | null;
}

/** Longest wait for a lock: readers that come after us wait behind us. */
const LOCK_TIMEOUT_MS = 1500;

/**
 * Replaces what `role` may read of our relations in `schema`: in one transaction, so that no reader sees less in between.
 * A relation or column that no longer exists is an error.
 *
 * @param url the database, as its owner
 */
export async function grantColumns(
  url: string,
  role: string,
  schema: string,
  relations: readonly ReadableRelation[],
): Promise<void> {
  const [name, place] = [quoteIdent(role), quoteIdent(schema)];
  const grants = relations.map(({ name: relation, columns }) => {
    const list = columns === null ? "" : ` (${columns.map(quoteIdent).join(", ")})`;
    return `grant select${list} on ${place}.${quoteIdent(relation)} to ${name};`;
  });
  await withAdmin(url, (admin) =>
    overRaces(() =>
      admin.begin(async (tx) => {
        await tx.unsafe(
          `set local search_path = ${SAFE_SEARCH_PATH}; set local lock_timeout = ${LOCK_TIMEOUT_MS}`,
        );
        const granted = await tx<{ name: string }[]>`
          select c.relname as name from pg_class as c
          where c.relnamespace = to_regnamespace(${place}) and c.relkind in ('r', 'p', 'v', 'm')
            and c.relowner = to_regrole(quote_ident(current_user))
            and (exists (select from aclexplode(c.relacl) as g where g.grantee = to_regrole(${name}))
              or exists (select from pg_attribute as a cross join aclexplode(a.attacl) as g
                where a.attrelid = c.oid and g.grantee = to_regrole(${name})))`;
        const revokes = granted.map(
          (relation) => `revoke all on ${place}.${quoteIdent(relation.name)} from ${name};`,
        );
        await tx.unsafe([...revokes, `grant usage on schema ${place} to ${name};`, ...grants].join("\n"));
      }),
    ),
  );
}
