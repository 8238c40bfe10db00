/**
 * Merges a table that was built in `<schema>_swap` into the live one, which stays, with every object that customers
 * have created on it: its rows, new columns, and columns with other types. See `sql/replica/merge.sql`.
 *
 * I6. A new column appears under its name only together with its values. If there are many, they are first written to a
 * column with a name of ours, in batches that do not block readers.
 */
import { BasetideError, isBasetideError } from "../errors";
import type { Build } from "./build";
import { catalogRow, recomments } from "./change-shape";
import { onReplica, readValue } from "./connection";
import { columnStorage, comments } from "./ddl";
import { quoteIdent } from "./naming";
import type { CatalogTable } from "./plan";
import type { Replica } from "./replica";
import { issueRows } from "./row-images";
import type { CellIssue, ReadAs, TableSpec } from "./spec";

/** Most rows that are written while readers wait: about 100 ms (docs/adr/7-in-place-changes.md). */
export const MERGED_ROWS = 5000;
/** Rows that one statement fills: a proxied write waits behind it. */
const FILLED_ROWS = 2000;

/** While columns are filled, the table is vacuumed after this share of its rows, but after so many rows at least. */
const VACUUMS = 10;
const VACUUM_ROWS = 5 * FILLED_ROWS;

/** Rows of both tables that one statement compares: it blocks no session. */
const COMPARED_ROWS = 10_000;

/**
 * `behind`: catch up with the recent-writes log and call again. `unlike`: the tables cannot be merged. `absent`: there is
 * no live table. `large`: fill the new columns first.
 */
type Merging = "merged" | "behind" | "unlike" | "absent" | "large";

export interface MergeOptions {
  /** The last applied version of the recent-writes log that the built rows include. */
  seen: number;
  /** The complete list of the table's issues after the merge. */
  issues: CellIssue[];
  /** The source's fields as they were before the first row was read. */
  readAs?: ReadAs | undefined;
  /** Most rows of the new columns that are written while readers wait; null: no limit. */
  most: number | null;
  /** Null: all rows are compared while no other session can write the table. */
  compared: Compared | null;
}

interface Merge {
  merging: Merging;
  /** Why the tables cannot be merged, and the remedy, for people. */
  obstacle: string | null;
  /** Row counts of the live table; null if nothing was done. */
  inserted: number | null;
  updated: number | null;
  deleted: number | null;
}

/** Rows that may differ. */
export interface Compared {
  /** How they were compared: opaque, for the database. */
  state: unknown;
  ids: string[];
  /** The last applied version of the recent-writes log before the comparison: later entries are compared, too. */
  since: number;
}

/**
 * Makes the live table equal to the build, in one transaction; then discard the build. Readers wait only if columns
 * change, and only while they do. Columns do not change while a session reads the catalog.
 *
 * @param live undefined if the catalog lacks the table, which was put aside, or left over by a restore
 * @throws BasetideError `replica_busy` if columns change and queries hold the table (try again), `shape_changed` if
 *   the live table is no longer `live`
 */
export function mergeBuild(
  { sql, schema, swap }: Replica,
  epoch: number,
  { spec, readers }: Build,
  live: CatalogTable | undefined,
  { seen, issues, readAs, most, compared }: MergeOptions,
): Promise<Merge> {
  const row = { ...catalogRow(spec), read_as: readAs };
  const shapeOf = ({ name, columns }: TableSpec) =>
    JSON.stringify([
      name,
      columns.map((column) => [column.fieldId, column.name, column.columnType]).toSorted(),
    ]);
  const isReshaped = !live || live.spec.isDamaged === true || shapeOf(spec) !== shapeOf(live.spec);
  const statements = [
    ...(live && !live.spec.isDamaged
      ? recomments(schema, spec, live.spec)
      : comments(schema, spec.name, spec)),
    ...(isReshaped ? columnStorage(schema, spec.name, spec) : []),
  ];
  return readers.change(
    isReshaped && live ? [`${schema}.${quoteIdent(live.spec.name)}`] : [],
    async (settled) => {
      const [answer] = await sql<Merge[]>`
      select merging, obstacle, inserted, updated, deleted from ${sql.unsafe(swap)}.merge_in(${epoch}, ${seen}, ${live?.shape ?? null}, ${spec.tableId},
        ${JSON.stringify(row)}::text::jsonb, ${statements}::text[],
        ${JSON.stringify(issueRows(issues))}::text::json, ${most},
        ${compared && JSON.stringify(compared)}::text::jsonb, ${settled}::text[])`;
      return answer!;
    },
  );
}

/**
 * Checks whether the live table can get the columns of `wanted`.
 *
 * @throws BasetideError `needs_attention`, with the statement to run
 */
export async function checkChange(
  { sql, swap }: Replica,
  live: CatalogTable,
  wanted: TableSpec,
): Promise<void> {
  const row = JSON.stringify(catalogRow(wanted));
  const [found] = await onReplica(
    () => sql<{ obstacle: string | null }[]>`
      select ${sql.unsafe(swap)}.merge_obstacle(t, ${row}::text::jsonb) as obstacle
      from ${sql.unsafe(swap)}._tables as t
      where t.table_id = ${wanted.tableId} and ${sql.unsafe(swap)}.live_table(t.name) is not null`,
  );
  if (found?.obstacle) throw new BasetideError("needs_attention", `${live.spec.name}: ${found.obstacle}.`);
}

/**
 * Finds the rows in which the build and the live table differ, in batches that block no session.
 *
 * @param since the last applied version of the recent-writes log that the built rows include
 * @param onBatch called after each batch; may throw to stop
 * @returns null if the tables cannot be merged, or differ in so many rows that comparing all at once is as good
 * @throws BasetideError `shape_changed`, as `mergeBuild`
 */
export async function compareBuild(
  { sql, swap }: Replica,
  epoch: number,
  { spec }: Build,
  live: CatalogTable,
  since: number,
  onBatch: () => void = () => {},
): Promise<Compared | null> {
  const row = JSON.stringify(catalogRow(spec));
  const ours = sql.unsafe(swap);
  const state = await readValue(
    () => sql<{ value: unknown }[]>`
      select ${ours}.start_compare(${epoch}, ${live.shape}, ${spec.tableId}, ${row}::text::jsonb) as value`,
  );
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
    // With so many, a list of the differing rows saves nothing.
    if (ids.length > 2 * COMPARED_ROWS) return null;
    after = batch!.last;
  }
  return { state, ids, since };
}

/**
 * Writes the values of the columns that the live table lacks to columns with names of ours, which `mergeBuild` then
 * renames. `mergeBuild` compares rows that other sessions write meanwhile.
 *
 * @param onBatch called after each batch; may throw to stop
 * @returns the number of rows written
 * @throws BasetideError `replica_busy`, `shape_changed`, as `mergeBuild`
 */
export async function fillColumns(
  { sql, schema, swap }: Replica,
  epoch: number,
  { spec, readers }: Build,
  live: CatalogTable,
  onBatch: () => void = () => {},
): Promise<number> {
  const row = JSON.stringify(catalogRow(spec));
  const ours = sql.unsafe(swap);
  const table = `${schema}.${quoteIdent(live.spec.name)}`;
  const [started] = await readers.change(
    [table],
    (settled) => sql<{ twins: unknown }[]>`
      select ${ours}.start_fill(${epoch}, ${live.shape}, ${row}::text::jsonb, ${settled}::text[]) as twins`,
  );
  const rows = await readValue(
    () => sql<{ value: number }[]>`
      select greatest(reltuples, 0)::float8 as value from pg_class
      where oid = ${`${swap}.${quoteIdent(spec.tableId)}`}::regclass`,
  );
  const vacuums = startVacuums(sql, table, rows);
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
    await vacuums(batch!.written);
  }
  await onReplica(
    () => sql`
      select ${ours}.index_fillings(${epoch}, ${live.shape}, ${row}::text::jsonb, ${JSON.stringify(started!.twins)}::text::jsonb)`,
  );
  return written;
}

/**
 * Sends the values of columns that were filled to the subscribers of published tables: their rows are written once more.
 * A table that cannot be written now, because of a lock or an object of the customer's, is left for later.
 *
 * @param withinMs for all tables
 * @returns whether none is left
 */
export async function sendFilled(replica: Replica, withinMs: number): Promise<boolean> {
  const { sql, swap } = replica;
  const deadline = performance.now() + withinMs;
  const tables = await onReplica(
    () =>
      sql<{ id: string }[]>`select table_id as id from ${sql.unsafe(swap)}._rows_to_send order by table_id`,
  );
  let areSent = true;
  for (const { id } of tables) {
    const isSent = await sendTable(replica, id, deadline).catch((error: unknown) => {
      if (!isBasetideError(error, "replica_busy") && !isBasetideError(error, "replica_refused")) throw error;
      return false;
    });
    areSent &&= isSent;
  }
  return areSent;
}

/** @returns false if the time was over before */
async function sendTable({ sql, swap }: Replica, tableId: string, deadline: number): Promise<boolean> {
  let vacuums: ReturnType<typeof startVacuums> | undefined;
  while (performance.now() < deadline) {
    const [batch] = await onReplica(
      () => sql<{ relation: string | null; rows: number | null; written: number | null }[]>`
        select relation, rows, written from ${sql.unsafe(swap)}.send_some(${tableId}, ${FILLED_ROWS})`,
    );
    const { relation, rows, written } = batch!;
    if (written === null) return true;
    vacuums ??= startVacuums(sql, relation!, rows!);
    await vacuums(written);
  }
  return false;
}

/** Vacuums the table now and then while its rows are written, so that later rows use the space of earlier ones' versions. */
function startVacuums(sql: Replica["sql"], table: string, rows: number): (written: number) => Promise<void> {
  const rowsPerVacuum = Math.max(VACUUM_ROWS, rows / VACUUMS);
  let left = rowsPerVacuum;
  return async (written) => {
    left -= written;
    if (left > 0) return;
    left = rowsPerVacuum;
    // Without it, the table only takes more space. Blocks no reader; truncating could.
    await sql.unsafe(`vacuum (truncate false) ${table}`).catch(() => {});
  };
}

/**
 * Drops leftovers of ended leases that no query holds: columns that were being filled, and tables that were being
 * built.
 *
 * @param kept ids of tables whose builds are still needed
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
