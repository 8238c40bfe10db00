/**
 * Builds a table in `<schema>_swap`. The first one of its id becomes the live table when it is complete (I6); later ones
 * are merged into that (`merge.ts`).
 */

import { isBasetideError } from "../errors";
import { CatalogReaders } from "./catalog-readers";
import { catalogRow, columnRenames, recomments } from "./change-shape";
import { columnLiterals } from "./column-literals";
import { onReplica } from "./connection";
import {
  columnStorage,
  comments,
  createTable,
  fenced,
  insertStatement,
  renameColumns,
  upsertStatement,
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
   * @param live what the catalog has of the table, which is missing, or is to be replaced
   * @param seen the last applied version of the recent-writes log that the rows include
   * @param readAs the source's fields as they were before the first row was read
   * @returns `behind`, with nothing done, if the recent-writes log has entries after `seen`: catch up and call again.
   *   `occupied` if there is a table, which must be merged with
   * @throws BasetideError `replica_busy` if queries hold a table that is replaced (try again), `shape_changed` if the
   *   catalog no longer has `live`
   */
  moveIn(
    live: CatalogTable | undefined,
    seen: number,
    issues: CellIssue[],
    readAs?: ReadAs,
  ): Promise<"moved" | "behind" | "occupied">;
}

/** Starts building the table of `wanted`, and drops leftovers of an earlier attempt. */
export async function startBuild(replica: Replica, epoch: number, wanted: TableSpec): Promise<Build> {
  const { schema, swap, sql } = replica;
  const name = wanted.tableId;
  const table = `${swap}.${quoteIdent(name)}`;
  const remove = `${fenced(swap)} delete from ${table} using fenced where id = any ($2)`;
  const readers = new CatalogReaders(replica);
  let spec = wanted;
  let isAnalyzed = false;
  let append = upsertStatement({ swap, table, spec });
  let insert = insertStatement({ swap, table, spec });
  const drop = async () => {
    await readers.change(
      [table],
      (settled) => sql`select ${sql.unsafe(swap)}.drop_build(${epoch}, ${name}, ${settled}::text[])`,
    );
  };
  const change = async (statements: string[]) => {
    await onReplica(() => sql`select ${sql.unsafe(swap)}.shape_build(${epoch}, ${statements}::text[])`);
  };
  const write = async (statement: string, rows: Row[]) => {
    const values = [epoch, ...columnLiterals(rows, spec)];
    await onReplica(() => sql.unsafe(statement, values, { prepare: true }));
  };
  const run = async (statement: string, ids: string[]) => {
    await onReplica(() => sql.unsafe(statement, [epoch, ids]));
  };
  const create = () =>
    change([
      createTable(swap, name, spec),
      ...columnStorage(swap, name, spec),
      ...comments(swap, name, spec),
    ]);
  try {
    await create();
  } catch (error) {
    // An earlier attempt has left it over.
    if (!isBasetideError(error, "shape_changed")) throw error;
    await drop();
    await create();
  }
  return {
    get spec() {
      return spec;
    },
    readers,
    append: (rows, areNew = false) => write(areNew ? insert : append, rows),
    keep: (live, ids) =>
      run(
        `${fenced(swap)} ${keepStatement(`${schema}.${quoteIdent(live.spec.name)}`, live.spec, table, spec)}`,
        ids,
      ),
    remove: (ids) => run(remove, ids),
    discard: drop,
    async rename(renamed) {
      await change([
        ...renameColumns(swap, name, columnRenames(spec, renamed)),
        ...recomments(swap, { ...renamed, name }, spec),
      ]);
      spec = renamed;
      append = upsertStatement({ swap, table, spec });
      insert = insertStatement({ swap, table, spec });
    },
    moveIn: (live, seen, issues, readAs) =>
      onReplica(async () => {
        // What replaces a table has queries at once; autovacuum analyzes others. Before the table is locked,
        // because writes wait for that lock.
        if (live && !isAnalyzed) await change([`analyze ${table}`]);
        isAnalyzed = true;
        const row = { ...catalogRow(spec), read_as: readAs };
        const changed = [table, ...(live ? [`${schema}.${quoteIdent(live.spec.name)}`] : [])];
        const [answer] = await readers.change(
          changed,
          (settled) => sql<{ moved: "moved" | "behind" | "occupied" }[]>`
            select ${sql.unsafe(swap)}.move_in(${epoch}, ${seen}, ${live?.shape ?? null}, ${name},
              ${JSON.stringify(row)}::text::jsonb, ${JSON.stringify(issueRows(issues))}::text::json,
              ${settled}::text[]) as moved`,
          !live,
        );
        return answer!.moved;
      }),
  };
}

/** Returns the statement that copies rows of one table into another; it follows `fenced`. */
function keepStatement(from: string, live: TableSpec, to: string, built: TableSpec): string {
  const before = new Map(live.columns.map((column) => [column.fieldId, column]));
  const shared = built.columns.flatMap(({ fieldId, columnType, name }) => {
    const column = before.get(fieldId);
    return column?.columnType === columnType
      ? [[quoteIdent(name), `l.${quoteIdent(column.name)}`] as const]
      : [];
  });
  const names = ["id", "created_time", ...shared.map(([name]) => name)].join(", ");
  const values = ["l.id", "l.created_time", ...shared.map(([, value]) => value)].join(", ");
  return `insert into ${to} (${names}) select ${values} from fenced, ${from} as l where l.id = any ($2)
    on conflict do nothing`;
}
