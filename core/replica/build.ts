/**
 * Builds a table aside, in `<schema>_swap`, and puts it in the place of the live one when it is complete (I6).
 */

import { catalogRow, LOCK_TIMEOUT } from "./change-shape";
import { onReplica } from "./connection";
import { applyStatement, columnStorage, comments, createTable, swapStatements } from "./ddl";
import { issueRows } from "./images";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import type { CellIssue, Row, TableSpec } from "./spec";

/** A table that is being built. */
export interface Build {
  spec: TableSpec;
  /** Adds rows, or brings those that are there up to date. Each id once per call. */
  append(rows: Row[]): Promise<void>;
  /** Takes rows out again. */
  remove(ids: string[]): Promise<void>;
  /**
   * Puts the table live, in one transaction, with exactly `issues`.
   *
   * @param live what it takes the place of, if anything
   * @param seen the last stamp of the journal that the rows take into account
   * @returns false, with nothing done, when the journal has gone past `seen`: catch up and come again
   * @throws BasetideError `replica_busy` when queries hold the live table; try again
   */
  swapIn(live: CatalogTable | undefined, seen: number, issues: CellIssue[]): Promise<boolean>;
}

/** Starts building `spec`'s table, throwing away what an earlier attempt may have left. */
export async function startBuild(replica: Replica, epoch: number, spec: TableSpec): Promise<Build> {
  const { schema, swap, sql } = replica;
  const name = spec.tableId;
  const table = `${swap}.${quoteIdent(name)}`;
  const append = applyStatement(table, spec);
  const remove = `delete from ${table} where $1 is not null and id = any ($2)`;
  const create = [
    `drop table if exists ${table}`,
    createTable(swap, name, spec),
    ...columnStorage(swap, name, spec),
    ...comments(swap, name, spec),
  ];
  await onReplica(
    () =>
      sql`select ${sql.unsafe(swap)}.change_shape(${epoch}, ${LOCK_TIMEOUT}, ${create}::text[], '[]', '{}')`,
  );
  const run = async (statement: string, rows: Row[], gone: string[]) => {
    await onReplica(
      () =>
        sql`select ${sql.unsafe(swap)}.append_rows(${epoch}, ${statement}, ${JSON.stringify(rows)}::text::json, ${gone}::text[])`,
    );
  };
  return {
    spec,
    append: (rows) => run(append, rows, []),
    remove: (ids) => run(remove, [], ids),
    swapIn: (live, seen, issues) =>
      onReplica(async () => {
        const statements = swapStatements(replica, name, spec.name, live?.spec.name);
        const row = catalogRow(schema, spec, (live?.shape ?? 0) + 1);
        const [answer] = await sql<{ swapped: boolean }[]>`
          select ${sql.unsafe(swap)}.swap_in(${epoch}, ${LOCK_TIMEOUT}, ${seen}, ${JSON.stringify(row)}::text::jsonb,
            ${statements}::text[], ${JSON.stringify(issueRows(issues))}::text::json) as swapped`;
        return answer!.swapped;
      }),
  };
}
