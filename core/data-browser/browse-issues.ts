/** Reads the records of one group of issues, a page at a time. */
import type { Base } from "../control/bases";
import { quoteIdent } from "../replica";
import { PAGE_ROWS } from "./browse";
import { type ReadContext, reading } from "./reading";

export interface IssuePage {
  rows: { id: string; value: string; seenAt: Date }[];
  /** The record after which the next page begins; undefined: this is the last page. */
  next: string | undefined;
}

/**
 * Returns the issues of a column for a reason, by the ids of their records.
 *
 * @param after the record after which the page begins
 * @throws BasetideError see `reading`
 */
export async function browseIssues(
  ctx: ReadContext,
  base: Pick<Base, "database">,
  group: { table: string; column: string; reason: string },
  after: string,
): Promise<IssuePage> {
  const values = [group.table, group.column, group.reason, after];
  // Postgres stores no text with NUL, and accepts none as a parameter.
  if (values.some((value) => value.includes("\0"))) return { rows: [], next: undefined };
  return reading(ctx, base, async (sql) => {
    const found = await sql.unsafe<{ id: string; value: string; seen_ms: number }[]>(
      `select record_id as id, value, floor(extract(epoch from seen_at) * 1000)::float8 as seen_ms
       from ${quoteIdent(base.database.schema)}._sync_issues
       where table_name = $1 and field = $2 and reason = $3 and record_id > $4 and record_id <> ''
       order by record_id limit ${PAGE_ROWS + 1}`,
      values,
    );
    const rows = found.slice(0, PAGE_ROWS);
    return {
      rows: rows.map(({ id, value, seen_ms }) => ({ id, value, seenAt: new Date(seen_ms) })),
      next: found.length > PAGE_ROWS ? rows.at(-1)!.id : undefined,
    };
  });
}
