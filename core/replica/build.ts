/**
 * Builds a table aside, in `<schema>_swap`, and puts it in the place of the live one when it is complete (I6).
 */

import { CatalogReaders } from "./catalog-readers";
import { catalogRow, columnRenames, LOCK_TIMEOUT, recomments } from "./change-shape";
import { onReplica } from "./connection";
import { applyStatement, columnStorage, comments, createTable, renameColumns } from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import { issueRows } from "./row-images";
import type { CellIssue, ReadAs, Row, TableSpec } from "./spec";

/** A table that is being built. */
export interface Build {
  /** What it is to be. */
  readonly spec: TableSpec;
  /** Who reads the catalog, as far as those were seen that change tables for it. */
  readonly readers: CatalogReaders;
  /** Adds rows, or brings those that are there up to date. Each id once per call. */
  append(rows: Row[]): Promise<void>;
  /** Takes rows out again. */
  remove(ids: string[]): Promise<void>;
  /**
   * Throws the table away.
   *
   * @throws BasetideError `replica_busy` while a dump has it
   */
  discard(): Promise<void>;
  /** Gives the table and its columns other names and comments; rows from now on are `spec`'s. */
  rename(spec: TableSpec): Promise<void>;
  /**
   * Puts the table live, in one transaction, with exactly `issues`.
   *
   * @param live what it takes the place of, if anything
   * @param seen the last stamp of the recent-writes log that the rows take into account
   * @param readAs what the source's fields were before the first row was read
   * @returns false, with nothing done, when the recent-writes log has gone past `seen`: catch up and come again
   * @throws BasetideError `replica_busy` when queries hold the live table; try again. `shape_changed` when the live
   *   table is not `live` any more
   */
  swapIn(
    live: CatalogTable | undefined,
    seen: number,
    issues: CellIssue[],
    readAs?: ReadAs,
  ): Promise<boolean>;
}

/** Starts building `wanted`'s table, throwing away what an earlier attempt may have left. */
export async function startBuild(replica: Replica, epoch: number, wanted: TableSpec): Promise<Build> {
  const { schema, swap, sql } = replica;
  const name = wanted.tableId;
  const table = `${swap}.${quoteIdent(name)}`;
  const remove = `delete from ${table} where $1 is not null and id = any ($2)`;
  const readers = new CatalogReaders(replica);
  let spec = wanted;
  let isAnalyzed = false;
  let append = applyStatement(table, spec);
  const drop = async () => {
    await readers.change(
      [table],
      (settled) => sql`select ${sql.unsafe(swap)}.drop_build(${epoch}, ${name}, ${settled}::text[])`,
    );
  };
  const change = async (statements: string[]) => {
    await onReplica(() => sql`select ${sql.unsafe(swap)}.shape_build(${epoch}, ${statements}::text[])`);
  };
  const run = async (statement: string, rows: Row[], gone: string[]) => {
    await onReplica(
      () =>
        sql`select ${sql.unsafe(swap)}.append_rows(${epoch}, ${statement}, ${JSON.stringify(rows)}::text::json, ${gone}::text[])`,
    );
  };
  await drop();
  await change([
    createTable(swap, name, spec),
    ...columnStorage(swap, name, spec),
    ...comments(swap, name, spec),
  ]);
  return {
    get spec() {
      return spec;
    },
    readers,
    append: (rows) => run(append, rows, []),
    remove: (ids) => run(remove, [], ids),
    discard: drop,
    async rename(renamed) {
      await change([
        ...renameColumns(swap, name, columnRenames(spec, renamed)),
        ...recomments(swap, { ...renamed, name }, spec),
      ]);
      spec = renamed;
      append = applyStatement(table, spec);
    },
    swapIn: (live, seen, issues, readAs) =>
      onReplica(async () => {
        // Before the table's lock, which writes wait for.
        if (!isAnalyzed) await change([`analyze ${table}`]);
        isAnalyzed = true;
        const row = { ...catalogRow(schema, spec), read_as: readAs };
        const changed = [table, ...(live ? [`${schema}.${quoteIdent(live.spec.name)}`] : [])];
        const [answer] = await readers.change(
          changed,
          (settled) => sql<{ swapped: boolean }[]>`
            select ${sql.unsafe(swap)}.swap_in(${epoch}, ${LOCK_TIMEOUT}, ${seen}, ${live?.shape ?? null}, ${name},
              ${JSON.stringify(row)}::text::jsonb, ${live && !live.spec.isDamaged ? alignColumns(schema, live.spec, spec) : []}::text[],
              ${JSON.stringify(issueRows(issues))}::text::json, ${settled}::text[]) as swapped`,
        );
        return answer!.swapped;
      }),
  };
}

/**
 * Gives the columns of the live table that will be in the new one the names that they have there; what has such a
 * name and will be gone makes room. Most were renamed long ago, when their fields were.
 */
function alignColumns(schema: string, live: TableSpec, spec: TableSpec): string[] {
  const renames = columnRenames(live, spec);
  const moving = new Set(renames.map(([from]) => from));
  const wanted = new Set(renames.map(([, to]) => to));
  const inTheWay = live.columns.filter(({ name }) => wanted.has(name) && !moving.has(name));
  return renameColumns(schema, live.name, [
    ...inTheWay.map(({ name }, index): [string, string] => [name, `_gone_${index}`]),
    ...renames,
  ]);
}
