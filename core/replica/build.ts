/**
 * Builds a table in `<schema>_swap` and replaces the live one by it when it is complete (I6).
 */

import { CatalogReaders } from "./catalog-readers";
import { catalogRow, columnRenames, LOCK_TIMEOUT, recomments } from "./change-shape";
import { onReplica } from "./connection";
import {
  applyStatement,
  columnStorage,
  comments,
  createTable,
  insertStatement,
  renameColumns,
  unusedName,
} from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import { issueRows } from "./row-images";
import type { CellIssue, ReadAs, Row, TableSpec } from "./spec";

/** A table that is being built. */
export interface Build {
  /** The shape that the table gets. */
  readonly spec: TableSpec;
  /** The sessions that read the catalog, as far as changes for this build have seen them. */
  readonly readers: CatalogReaders;
  /**
   * Inserts rows or updates existing ones. Each id at most once per call.
   *
   * @param areNew true if the table has none of them: costs half
   */
  append(rows: Row[], areNew?: boolean): Promise<void>;
  /** Copies rows of the live table, as far as both have the same columns; those that the build has stay. */
  keep(live: CatalogTable, ids: string[]): Promise<void>;
  /** Deletes rows. */
  remove(ids: string[]): Promise<void>;
  /**
   * Drops the table.
   *
   * @throws BasetideError `replica_busy` while a dump holds it
   */
  discard(): Promise<void>;
  /** Renames the table and its columns and updates their comments; rows appended later are mapped for `spec`. */
  rename(spec: TableSpec): Promise<void>;
  /**
   * Makes the table live, in one transaction, with exactly `issues`.
   *
   * @param live the table that it replaces, if any
   * @param seen the last applied version of the recent-writes log that the rows include
   * @param readAs the source's fields as they were before the first row was read
   * @returns false, with nothing done, if the recent-writes log has entries after `seen`: catch up and call again
   * @throws BasetideError `replica_busy` if queries hold the live table (try again), `shape_changed` if the live
   *   table is no longer `live`
   */
  swapIn(
    live: CatalogTable | undefined,
    seen: number,
    issues: CellIssue[],
    readAs?: ReadAs,
  ): Promise<boolean>;
}

/** Starts building the table of `wanted`, and drops leftovers of an earlier attempt. */
export async function startBuild(replica: Replica, epoch: number, wanted: TableSpec): Promise<Build> {
  const { schema, swap, sql } = replica;
  const name = wanted.tableId;
  const table = `${swap}.${quoteIdent(name)}`;
  const remove = `delete from ${table} where $1 is not null and id = any ($2)`;
  const readers = new CatalogReaders(replica);
  let spec = wanted;
  let isAnalyzed = false;
  let append = applyStatement(table, spec);
  let insert = insertStatement(table, spec);
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
    append: (rows, areNew = false) => run(areNew ? insert : append, rows, []),
    keep: (live, ids) =>
      run(keepStatement(`${schema}.${quoteIdent(live.spec.name)}`, live.spec, table, spec), [], ids),
    remove: (ids) => run(remove, [], ids),
    discard: drop,
    async rename(renamed) {
      await change([
        ...renameColumns(swap, name, columnRenames(spec, renamed)),
        ...recomments(swap, { ...renamed, name }, spec),
      ]);
      spec = renamed;
      append = applyStatement(table, spec);
      insert = insertStatement(table, spec);
    },
    swapIn: (live, seen, issues, readAs) =>
      onReplica(async () => {
        // Before the table is locked, because writes wait for that lock.
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

/** Returns the statement that copies rows of one table into another. */
function keepStatement(from: string, live: TableSpec, to: string, built: TableSpec): string {
  const before = new Map(live.columns.map((column) => [column.fieldId, column]));
  const shared = built.columns.flatMap(({ fieldId, columnType, name }) => {
    const column = before.get(fieldId);
    return column?.columnType === columnType ? [[quoteIdent(name), quoteIdent(column.name)] as const] : [];
  });
  const [names, values] = [0, 1].map((at) =>
    ["id", "created_time", ...shared.map((pair) => pair[at])].join(", "),
  );
  return `insert into ${to} (${names}) select ${values} from ${from} where $1 is not null and id = any ($2) on conflict do nothing`;
}

/**
 * Renames the live table's columns that the new table keeps to their new names. A column that has such a name and will
 * be dropped is renamed out of the way. Most columns were renamed earlier, together with their fields.
 */
function alignColumns(schema: string, live: TableSpec, spec: TableSpec): string[] {
  const renames = columnRenames(live, spec);
  const moving = new Set(renames.map(([from]) => from));
  const wanted = new Set(renames.map(([, to]) => to));
  const inTheWay = live.columns.filter(({ name }) => wanted.has(name) && !moving.has(name));
  return renameColumns(schema, live.name, [
    ...inTheWay.map(({ name }): [string, string] => [name, unusedName()]),
    ...renames,
  ]);
}
