/**
 * Merges a table that was built aside into the live one, which stays, with everything that others have put on it. For
 * tables that only get columns, and for rows that are compared with the source's; see `sql/replica/merge.sql`.
 *
 * I6. A new column is there, under its name, only with its values. Where those are many, they are written to a column
 * with a name of ours first, in batches that keep no reader waiting.
 */
import type { Build } from "./build";
import { catalogRow, columnRenames, LOCK_TIMEOUT, recomments } from "./change-shape";
import { onReplica } from "./connection";
import { columnStorage, renameColumns } from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import { issueRows } from "./row-images";
import type { CellIssue, ReadAs } from "./spec";

/** Rows that are written while readers wait, at most: about 100 ms of it (docs/adr/7-additive-changes.md). */
export const MERGED_ROWS = 5000;
/** Rows that one statement fills: a proxied write waits behind it. */
const FILLED_ROWS = 2000;

/** Rows that one statement compares: it keeps nobody waiting. */
const COMPARED_ROWS = 5000;
/** From so many on, a list of those that differ saves nothing. */
const MOST_DIFFERING = 20_000;

/**
 * `behind`: catch up with the recent-writes log and come again. `unlike`: the tables cannot be merged, swap. `large`: fill the new
 * columns first.
 */
export type Merging = "merged" | "behind" | "unlike" | "large";

export interface MergeOptions {
  /** The last stamp of the recent-writes log that the built rows take into account. */
  seen: number;
  /** Exactly these are the table's then. */
  issues: CellIssue[];
  /** What the source's fields were before the first row was read. */
  readAs?: ReadAs | undefined;
  /** Rows of the new columns that are written while readers wait; null: all that it takes. */
  most: number | null;
  /** Null: all rows are compared while nobody else can write the table. */
  compared: Compared | null;
}

export interface Merge {
  merging: Merging;
  /** Rows of the live table; null where nothing was done. */
  inserted: number | null;
  updated: number | null;
  deleted: number | null;
}

/** Rows that may differ. */
export interface Compared {
  /** What they were compared by, for the database. */
  state: unknown;
  ids: string[];
  /** The last stamp of the recent-writes log before: what it tells later is compared, too. */
  since: number;
}

/**
 * Makes the live table equal to the build, in one transaction; the build is then to be discarded. Readers wait only where
 * columns come, and only while those are added, which no session is that reads the catalog just now.
 *
 * @throws BasetideError `replica_busy` when columns come and queries hold the table; try again. `shape_changed` when the
 *   live table is not `live` any more
 */
export function mergeBuild(
  { sql, schema, swap }: Replica,
  epoch: number,
  { spec, readers }: Build,
  live: CatalogTable,
  { seen, issues, readAs, most, compared }: MergeOptions,
): Promise<Merge> {
  const row = { ...catalogRow(schema, spec), read_as: readAs };
  const renames = renameColumns(schema, live.spec.name, columnRenames(live.spec, spec));
  const adds = spec.columns.length > live.spec.columns.length;
  const statements = [
    ...recomments(schema, spec, live.spec),
    ...(adds ? columnStorage(schema, spec.name, spec) : []),
  ];
  const isReshaped = adds || renames.length > 0 || spec.name !== live.spec.name || live.spec.isDamaged;
  return readers.change(isReshaped ? [`${schema}.${quoteIdent(live.spec.name)}`] : [], async (settled) => {
    const [answer] = await sql<Merge[]>`
      select merging, inserted, updated, deleted from ${sql.unsafe(swap)}.merge_in(${epoch}, ${LOCK_TIMEOUT}, ${seen}, ${live.shape}, ${spec.tableId},
        ${JSON.stringify(row)}::text::jsonb, ${renames}::text[], ${statements}::text[],
        ${JSON.stringify(issueRows(issues))}::text::json, ${most},
        ${compared && JSON.stringify(compared)}::text::jsonb, ${settled}::text[])`;
    return answer!;
  });
}

/**
 * Finds the rows in which the build and the live table differ, in batches that keep nobody waiting.
 *
 * @param since the last stamp of the recent-writes log that the built rows take into account
 * @param onBatch told after each batch; may throw to stop
 * @returns null where they cannot be merged, or differ in so many rows that they are as well compared all at once
 * @throws BasetideError `shape_changed`, as `mergeBuild`
 */
export async function compareBuild(
  { sql, schema, swap }: Replica,
  epoch: number,
  { spec }: Build,
  live: CatalogTable,
  since: number,
  onBatch: () => void = () => {},
): Promise<Compared | null> {
  const row = JSON.stringify(catalogRow(schema, spec));
  const ours = sql.unsafe(swap);
  const [begun] = await onReplica(
    () => sql<{ state: unknown }[]>`
      select ${ours}.start_compare(${epoch}, ${live.shape}, ${spec.tableId}, ${row}::text::jsonb) as state`,
  );
  const { state } = begun!;
  if (state === null) return null;
  const ids: string[] = [];
  for (let after: string | null = ""; after !== null; onBatch()) {
    const from: string = after;
    const [batch] = await onReplica(
      () => sql<{ ids: string[]; last: string | null }[]>`
        select ids, last from ${ours}.compare_some(${epoch}, ${live.shape}, ${spec.tableId}, ${row}::text::jsonb,
          ${JSON.stringify(state)}::text::jsonb, ${from}, ${COMPARED_ROWS})`,
    );
    for (const id of batch!.ids) ids.push(id);
    if (ids.length > MOST_DIFFERING) return null;
    after = batch!.last;
  }
  return { state, ids, since };
}

/**
 * Writes the values of the columns that the live table lacks to columns with names of ours, which `mergeBuild` then
 * renames. What others write meanwhile `mergeBuild` compares.
 *
 * @param onBatch told after each batch; may throw to stop
 * @returns how many rows were written
 * @throws BasetideError `replica_busy`, `shape_changed`, as `mergeBuild`
 */
export async function fillColumns(
  { sql, schema, swap }: Replica,
  epoch: number,
  { spec, readers }: Build,
  live: CatalogTable,
  onBatch: () => void = () => {},
): Promise<number> {
  const row = JSON.stringify(catalogRow(schema, spec));
  const ours = sql.unsafe(swap);
  await readers.change(
    [`${schema}.${quoteIdent(live.spec.name)}`],
    (settled) => sql`
      select ${ours}.start_fill(${epoch}, ${LOCK_TIMEOUT}, ${live.shape}, ${row}::text::jsonb, ${settled}::text[])`,
  );
  let written = 0;
  for (let after: string | null = ""; after !== null; onBatch()) {
    const from: string = after;
    const [batch] = await onReplica(
      () => sql<{ last: string | null; written: number }[]>`
        select last, written from ${ours}.fill_some(${epoch}, ${live.shape}, ${spec.tableId}, ${row}::text::jsonb, ${from},
          ${FILLED_ROWS})`,
    );
    after = batch!.last;
    written += batch!.written;
  }
  return written;
}

/**
 * Drops what leases that have ended left behind, where no query holds it: columns that they were filling, and tables that
 * they were building.
 *
 * @param kept ids of tables whose builds are still wanted
 */
export async function dropUnfinished(
  { sql, swap }: Replica,
  epoch: number,
  kept: Iterable<string> = [],
): Promise<void> {
  const ours = sql.unsafe(swap);
  await onReplica(
    () => sql`select ${ours}.forget_fillings(${epoch}), ${ours}.drop_builds(${epoch}, ${[...kept]}::text[])`,
  );
}
