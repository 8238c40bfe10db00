/** Reads a page of a table, or one record, as the customer's role. Costs no call to the source. */
import { type Base, sourceTables } from "../control/bases";
import type { ReaderSql } from "../control/placement";
import { BasetideError } from "../errors";
import { quoteIdent } from "../replica";
import {
  type BrowsedColumn,
  type BrowsedTable,
  browsedTable,
  describeTable,
  findLinked,
  tableIdIn,
} from "./columns";
import { type ReadContext, reading, rowsOf } from "./reading";
import {
  type CellForm,
  type Cursor,
  countStatement,
  linkedStatement,
  MOST_COUNTED,
  pageStatements,
  recordStatement,
  SEARCH_MS,
  type Selection,
} from "./statements";
import { browsableTables } from "./tables";
import { type CheckedState, checkState, type ViewState } from "./view-state";

export const PAGE_ROWS = 100;
/** A count that takes longer is left out, ms. */
const COUNT_MS = 1000;
const MOST_CHANGES = 50;
/** A change of larger values is listed without them. */
const CHANGE_BYTES = 20_000;

/** A cell as it is shown: text, a check mark, or the elements of a list and their number. */
export type Cell = string | boolean | null | CellList;

export interface CellList {
  elements: string[];
  total: number;
  /** Of attachments, as far as known. */
  files?: (AttachedFile | null)[] | undefined;
}

/** What the source says of an attachment. */
export interface AttachedFile {
  id: string | null;
  filename: string | null;
  /** Media type. */
  type: string | null;
  /** Pixels. */
  width: number | null;
  height: number | null;
}

interface BrowsedRow {
  id: string;
  /** In the order of the shown columns. */
  cells: Cell[];
  /** SQL names of the columns whose value in the source did not fit. */
  issues: string[];
}

export interface BrowsedPage {
  table: BrowsedTable;
  state: CheckedState;
  rows: BrowsedRow[];
  hasPrevious: boolean;
  hasNext: boolean;
  /** Of all rows that match, if known; `isMore`: there are more than this. */
  count: { rows: number; isMore: boolean } | undefined;
  /** The texts of linked records, by the source's id of their table, then by record id. */
  linked: Map<string, Map<string, string>>;
  /** How long the rows took, ms. */
  tookMs: number;
  /** The search took too long: there may be more rows that match. */
  isSearchCut: boolean;
  /** The record where the page was to begin is gone, and the first page is shown. */
  isCursorGone: boolean;
}

export interface BrowsedRecord {
  table: BrowsedTable;
  id: string;
  /** In the order of the table's columns. */
  cells: Cell[];
  issues: { column: string; value: string; reason: string }[];
  linked: BrowsedPage["linked"];
  /** The newest first; undefined if changes are not recorded. */
  changes: RecordChange[] | undefined;
}

export interface RecordChange {
  seenAt: Date;
  operation: "insert" | "update" | "delete";
  by: string;
  /** By SQL name; null if they are too large to show. */
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
}

/**
 * Reads the page of `table` that `asked` describes. Reads no rows if one of its filters has a problem.
 *
 * @throws BasetideError `not_found` if the table does not exist; see `reading`
 */
export async function browsePage(
  ctx: ReadContext,
  base: Base,
  tableName: string,
  asked: ViewState,
): Promise<BrowsedPage> {
  return reading(ctx, base, async (sql) => {
    const table = await loadTable(ctx, sql, base, tableName);
    const known = browsableTables(base).find(({ name }) => name === tableName)?.records;
    const state = checkState(asked, table, known);
    const page = { table, state, linked: new Map(), isCursorGone: false, isSearchCut: false };
    if (state.filters.some(({ problem }) => problem)) {
      return { ...page, rows: [], hasPrevious: false, hasNext: false, count: undefined, tookMs: 0 };
    }
    const isCursorGone = state.cursor !== undefined && !(await hasRecord(sql, table, state.cursor.id));
    if (isCursorGone) Object.assign(state, { cursor: undefined, firstRow: 1 });
    const selection = { filters: state.usable, sort: state.sort, search: state.search };
    const { cursor } = state;
    const startedAt = performance.now();
    const read = await browseRows(sql, table, state.shown, selection, {
      cursor,
      limit: PAGE_ROWS + 1,
      form: "grid",
    });
    const tookMs = performance.now() - startedAt;
    const isMore = read.length > PAGE_ROWS;
    const isSearchCut = state.search !== "" && !isMore && tookMs >= SEARCH_MS;
    const found = read.slice(0, PAGE_ROWS);
    if (cursor?.isBefore) found.reverse();
    const rows = found.map(([id, ...cells]) => ({
      id: id as string,
      cells: cells.map((cell, index) => toCell(cell, state.shown[index]!)),
      issues: [] as string[],
    }));
    await markIssues(sql, table, rows);
    return {
      ...page,
      rows,
      hasPrevious: cursor === undefined ? false : cursor.isBefore ? isMore : true,
      hasNext: cursor?.isBefore ? true : isMore,
      count: await countOf(sql, table, state, {
        isWhole: !isMore && !cursor,
        isSearchCut,
        rows: rows.length,
        known,
      }),
      linked: await linkedTexts(sql, table, state.shown, rows),
      tookMs,
      isSearchCut,
      isCursorGone,
    };
  });
}

/**
 * Describes the filters that `asked` would apply, and reads no rows.
 *
 * @throws BasetideError `not_found` if the table does not exist; see `reading`
 */
export async function browseFilters(
  ctx: ReadContext,
  base: Base,
  tableName: string,
  asked: ViewState,
): Promise<Pick<BrowsedPage, "table" | "state">> {
  const table = await reading(ctx, base, (sql) => loadTable(ctx, sql, base, tableName));
  return { table, state: checkState(asked, table, undefined) };
}

/** @throws BasetideError `not_found` if the table or the record does not exist; see `reading` */
export async function browseRecord(
  ctx: ReadContext,
  base: Base,
  tableName: string,
  recordId: string,
): Promise<BrowsedRecord> {
  return reading(ctx, base, async (sql) => {
    const table = await loadTable(ctx, sql, base, tableName);
    const [row] = await rowsOf(sql, recordStatement(table, recordId));
    if (!row) {
      throw new BasetideError(
        "not_found",
        `There is no record ${recordId} in ${table.sourceName}: it may have been deleted`,
      );
    }
    const [id, ...values] = row;
    const cells = values.map((cell, index) => toCell(cell, table.columns[index]!));
    const one = { id: id as string, cells, issues: [] };
    const issues = await sql.unsafe<BrowsedRecord["issues"]>(
      `select field as "column", value, reason from ${issuesOf(table)} where table_name = $1 and record_id = $2 order by field`,
      [table.name, one.id],
    );
    return {
      table,
      id: one.id,
      cells,
      issues: [...issues],
      linked: await linkedTexts(sql, table, table.columns, [one]),
      changes: await changesOf(sql, table, one.id),
    };
  });
}

/** Reads rows in the selection's order, segment after segment, up to `limit`; in reverse before a cursor. */
export async function browseRows(
  sql: ReaderSql,
  table: BrowsedTable,
  columns: readonly BrowsedColumn[],
  selection: Selection,
  options: { cursor?: Cursor | undefined; limit: number; form: CellForm },
): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  for (const statement of pageStatements(table, columns, selection, options)) {
    if (rows.length >= options.limit) break;
    rows.push(...(await rowsOf(sql, statement(options.limit - rows.length))));
  }
  return rows;
}

/** @throws BasetideError `not_found` */
export async function loadTable(
  ctx: ReadContext,
  sql: ReaderSql,
  base: Pick<Base, "id" | "database">,
  name: string,
): Promise<BrowsedTable> {
  const { schema } = base.database;
  const described = name.includes("\0") ? undefined : await describeTable(sql, schema, name);
  if (!described) {
    throw new BasetideError(
      "not_found",
      `There is no table ${name} in this database. It may have been renamed or deleted, or was not synced yet`,
    );
  }
  const tableId = tableIdIn(described.comment);
  const shown =
    tableId === undefined ? undefined : (await sourceTables(ctx.db, base.id, [tableId])).get(tableId);
  const linkedIds = Object.values(shown?.fields ?? {}).flatMap(({ linkedTableId }) => linkedTableId ?? []);
  const displays = linkedIds.length === 0 ? new Map() : await sourceTables(ctx.db, base.id, linkedIds);
  const wanted = [...displays.values()].map(({ tableId: id, primaryFieldId }) => ({
    tableId: id,
    fieldId: primaryFieldId,
  }));
  return browsedTable({ schema, name }, described, shown, await findLinked(sql, schema, wanted));
}

async function hasRecord(sql: ReaderSql, table: BrowsedTable, id: string): Promise<boolean> {
  return (await rowsOf(sql, recordStatement({ ...table, columns: [] }, id))).length > 0;
}

/** The count of a filter is read on its first page only, and given up if it takes long. */
async function countOf(
  sql: ReaderSql,
  table: BrowsedTable,
  { usable, cursor, search }: CheckedState,
  page: { isWhole: boolean; isSearchCut: boolean; rows: number; known: number | undefined },
): Promise<BrowsedPage["count"]> {
  const { isWhole, isSearchCut, rows, known } = page;
  if (isSearchCut) return undefined;
  if (isWhole) return { rows, isMore: false };
  if (usable.length === 0 && search === "")
    return known === undefined ? undefined : { rows: known, isMore: false };
  if (cursor) return undefined;
  const { text, values } = countStatement(table, { filters: usable, search });
  try {
    const count = await sql.begin("read only", async (tx) => {
      await tx.unsafe(`set local statement_timeout = ${COUNT_MS}`);
      const [row] = await tx.unsafe<{ count: number }[]>(text, values);
      return row!.count;
    });
    return { rows: Math.min(count, MOST_COUNTED), isMore: count > MOST_COUNTED };
  } catch {
    return undefined;
  }
}

async function markIssues(sql: ReaderSql, table: BrowsedTable, rows: BrowsedRow[]): Promise<void> {
  const found = await sql.unsafe<{ id: string; column: string }[]>(
    `select record_id as id, field as "column" from ${issuesOf(table)}
     where table_name = $1 and record_id = any (array(select json_array_elements_text($2::text::json)))`,
    [table.name, JSON.stringify(rows.map(({ id }) => id))],
  );
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const { id, column } of found) byId.get(id)?.issues.push(column);
}

/** One statement for each linked table. */
async function linkedTexts(
  sql: ReaderSql,
  table: BrowsedTable,
  columns: readonly BrowsedColumn[],
  rows: readonly { cells: Cell[] }[],
): Promise<BrowsedPage["linked"]> {
  const wanted = new Map<string, { link: NonNullable<BrowsedColumn["link"]>; ids: Set<string> }>();
  columns.forEach(({ link }, index) => {
    if (!link) return;
    const { ids } = wanted.get(link.tableId) ?? { ids: new Set<string>() };
    wanted.set(link.tableId, { link, ids });
    for (const { cells } of rows) for (const id of elementsOf(cells[index]!)) ids.add(id);
  });
  const texts: BrowsedPage["linked"] = new Map();
  for (const [tableId, { link, ids }] of wanted) {
    const found = ids.size === 0 ? [] : await rowsOf(sql, linkedStatement(table.schema, link, [...ids]));
    texts.set(tableId, new Map(found.map(([id, text]) => [id as string, (text as string | null) ?? ""])));
  }
  return texts;
}

/** The elements of a cell of links, which is a list or a single id. */
export function elementsOf(cell: Cell): string[] {
  if (typeof cell === "string") return cell === "" ? [] : [cell];
  return typeof cell === "object" && cell !== null ? cell.elements : [];
}

async function changesOf(
  sql: ReaderSql,
  table: BrowsedTable,
  id: string,
): Promise<RecordChange[] | undefined> {
  const place = `${quoteIdent(table.schema)}._sync_history`;
  const [has] = await sql.unsafe<{ has: boolean }[]>("select to_regclass($1) is not null as has", [place]);
  if (!has!.has) return undefined;
  return sql.unsafe<RecordChange[]>(
    `select seen_at as "seenAt", operation, by,
       case when octet_length(old::text) <= ${CHANGE_BYTES} then old end as old,
       case when octet_length(new::text) <= ${CHANGE_BYTES} then new end as new
     from ${place} where record_id = $1 order by id desc limit ${MOST_CHANGES}`,
    [id],
  );
}

function issuesOf({ schema }: BrowsedTable): string {
  return `${quoteIdent(schema)}._sync_issues`;
}

/** A driver's value as a cell: a list arrives as `[total, elements]`, that of attachments with what is known of them. */
function toCell(value: unknown, { kind }: BrowsedColumn): Cell {
  if (kind !== "list" || !Array.isArray(value)) return (value ?? null) as string | boolean | null;
  const [total, elements, files] = value as [number, (string | null)[], CellList["files"]];
  return { total, elements: elements.map((element) => element ?? ""), files };
}
