/**
 * The statements of the data browser. Names are quoted, values are parameters, and every text is one SELECT.
 *
 * Rows are in a total order: by the sorted column, empty cells last, then by id. The order has two segments, rows with a
 * value and rows without, each read by a statement that an index on the column can serve in both directions.
 */
import { quoteIdent } from "../replica";
import { type BrowsedColumn, type BrowsedTable, type ColumnKind, cellSql } from "./columns";
import { containing, escapeLike, type Filter, filterSql } from "./filters";

export interface Sort {
  /** SQL name. */
  column: string;
  isDescending: boolean;
}

export interface BrowseStatement {
  text: string;
  values: string[];
}

/** Where a page begins: after this record, or before it. `value`: its cell in the sorted column; read from the table unless given. */
export interface Cursor {
  id: string;
  isBefore: boolean;
  value?: string | null;
}

/** Which rows, in which order. */
export interface Selection {
  filters: readonly Filter[];
  sort: Sort;
  /** What a cell of any column contains; empty: anything. */
  search?: string;
}

/** Rows with a value in the sorted column, or without one. */
type Segment = "values" | "empty";

/** Characters and elements of a cell that a grid shows; one more is read to tell that there are more. */
export const CELL_CHARACTERS = 120;
const CELL_ELEMENTS = 8;
/** The same for a record that is shown alone. */
const RECORD_CHARACTERS = 20_000;
const RECORD_ELEMENTS = 200;
/** Rows that a search reaches later are left out, ms. */
export const SEARCH_MS = 2000;
/** Filtered rows are counted up to here. */
export const MOST_COUNTED = 10_000;

const CASTS: Record<ColumnKind, string> = {
  text: "text",
  list: "text[]",
  number: "numeric",
  checkbox: "boolean",
  date: "date",
  time: "timestamp",
};

/** The form of cells: clipped for a grid or a record, or whole for a file. */
export type CellForm = "grid" | "record" | "whole";

/**
 * Returns the statements that read up to `limit` rows after or before the cursor, in this order, until there are enough.
 * Before a cursor the rows come in reverse. Each row is its id, the text of its sorted cell if `form` is `whole`, then the
 * cells of `columns`.
 */
export function pageStatements(
  table: BrowsedTable,
  columns: readonly BrowsedColumn[],
  selection: Selection,
  options: { cursor?: Cursor | undefined; limit: number; form: CellForm },
): ((limit: number) => BrowseStatement)[] {
  const sorted = columnNamed(table, selection.sort.column);
  const segments: Segment[] = isNeverEmpty(sorted) ? ["values"] : ["values", "empty"];
  if (options.cursor?.isBefore) segments.reverse();
  return segments.map(
    (segment) => (limit) => segmentStatement(table, columns, selection, { ...options, limit }, segment),
  );
}

function segmentStatement(
  table: BrowsedTable,
  columns: readonly BrowsedColumn[],
  { filters, sort, search = "" }: Selection,
  { cursor, limit, form }: { cursor?: Cursor | undefined; limit: number; form: CellForm },
  segment: Segment,
): BrowseStatement {
  const values: string[] = [];
  const add = (value: string) => `$${values.push(clean(value))}`;
  const sorted = columnNamed(table, sort.column);
  const cell = cellSql(sorted);
  const conditions = conditionsOf(table, { filters, search }, add);
  // The check comes first for each row: after the time, the rest of a scan is cheap. A file has all rows or none.
  if (search !== "" && form !== "whole") {
    const inTime = `clock_timestamp() < statement_timestamp() + interval '${SEARCH_MS} milliseconds'`;
    conditions.push(`case when ${inTime} then ${conditions.pop()} else false end`);
  }
  const isReversed = sort.isDescending !== (cursor?.isBefore ?? false);
  if (!isNeverEmpty(sorted)) conditions.push(`${cell} is ${segment === "empty" ? "" : "not "}null`);
  if (cursor) conditions.push(beyond(table, sorted, cursor, { segment, isReversed }, add));
  const direction = isReversed ? " desc" : "";
  const order =
    segment === "empty" || sorted.name === "id"
      ? `t.id${direction}`
      : `${cell}${direction}, t.id${direction}`;
  const cells = columns.map((column) => cellOf(column, form));
  const key = form === "whole" ? [`${cell}::text`] : [];
  // Cells are clipped after the limit, or a sort would decompress the long texts of every row.
  const ofCell = ({ name, files }: BrowsedColumn) => (files && form !== "whole" ? [name, files] : [name]);
  const read = [...new Set(["id", sorted.name, ...columns.flatMap(ofCell)])];
  const text = `select ${["t.id", ...key, ...cells].map((one, index) => `${one} as c${index}`).join(", ")}
from (
  select ${read.map((name) => `t.${quoteIdent(name)}`).join(", ")}
  from ${nameOf(table)} as t${where(conditions)}
  order by ${order} limit ${Math.trunc(limit)}
) as t
order by ${order}`;
  return { text, values };
}

/** The condition for rows of a segment beyond the cursor, in the direction of reading. */
function beyond(
  table: BrowsedTable,
  sorted: BrowsedColumn,
  cursor: Cursor,
  { segment, isReversed }: { segment: Segment; isReversed: boolean },
  add: (value: string) => string,
): string {
  const sign = isReversed ? "<" : ">";
  const id = `${add(cursor.id)}::text`;
  if (sorted.name === "id") return `t.id ${sign} ${id}`;
  const cell = cellSql(sorted);
  const at =
    cursor.value === undefined
      ? `(select ${cellSql(sorted, "b")} from ${nameOf(table)} as b where b.id = ${id})`
      : cursor.value === null
        ? "null"
        : // The driver would convert values of other types than text by rules of its own.
          `${add(cursor.value)}::text::${CASTS[sorted.kind]}`;
  if (segment === "empty") {
    // Empty cells are last: all of them follow a row with a value, and none precedes it.
    return cursor.isBefore
      ? `(${at} is null and t.id ${sign} ${id})`
      : `(${at} is not null or t.id ${sign} ${id})`;
  }
  const beyondValue = `${cell} ${sign}= ${at} and (${cell} ${sign} ${at} or t.id ${sign} ${id})`;
  return cursor.isBefore && !isNeverEmpty(sorted) ? `(${at} is null or ${beyondValue})` : `(${beyondValue})`;
}

/** Counts the filtered rows, up to one more than `MOST_COUNTED`. */
export function countStatement(
  table: BrowsedTable,
  selection: Pick<Selection, "filters" | "search">,
): BrowseStatement {
  const values: string[] = [];
  const add = (value: string) => `$${values.push(clean(value))}`;
  const conditions = conditionsOf(table, selection, add);
  const text = `select count(*)::int as count from (select from ${nameOf(table)} as t${where(conditions)}
limit ${MOST_COUNTED + 1}) as f`;
  return { text, values };
}

/** Those of the filters, then that of the search. */
function conditionsOf(
  table: BrowsedTable,
  { filters, search = "" }: Pick<Selection, "filters" | "search">,
  add: (value: string) => string,
): string[] {
  const conditions = filters.map((filter) =>
    filterSql(filter, columnNamed(table, filter.column), table.schema, add),
  );
  if (search === "") return conditions;
  if (table.columns.every(({ kind }) => kind === "checkbox")) return [...conditions, "false"];
  const pattern = `${add(`%${escapeLike(search)}%`)}::text`;
  const searched = table.columns.filter(({ kind }) => kind !== "checkbox");
  return [
    ...conditions,
    `(${searched.map((column) => containing(column, table.schema, pattern)).join(" or ")})`,
  ];
}

/** Reads one record with all its cells. */
export function recordStatement(table: BrowsedTable, id: string): BrowseStatement {
  const cells = table.columns.map((column, index) => `${cellOf(column, "record")} as c${index + 1}`);
  return {
    text: `select ${["t.id as c0", ...cells].join(", ")} from ${nameOf(table)} as t where t.id = $1::text`,
    values: [clean(id)],
  };
}

/** Reads the texts that name these records of a linked table. */
export function linkedStatement(
  schema: string,
  link: { table: string; primary: string },
  ids: string[],
): BrowseStatement {
  return {
    text: `select t.id, left(t.${quoteIdent(link.primary)}::text, ${CELL_CHARACTERS}) as text
from ${quoteIdent(schema)}.${quoteIdent(link.table)} as t
where t.id = any (array(select json_array_elements_text($1::text::json)))`,
    values: [JSON.stringify(ids.map(clean))],
  };
}

/** Text; a list is JSON: its length, its first elements, and the details of attachments. */
function cellOf(column: BrowsedColumn, form: CellForm): string {
  const cell = cellSql(column);
  if (column.kind === "checkbox") return cell;
  if (form === "whole") return column.kind === "list" ? `to_json(${cell})` : `${cell}::text`;
  // The URL of an attachment leads nowhere if it is clipped.
  const isClipped = form === "grid" && column.shownAs !== "attachment";
  const characters = (isClipped ? CELL_CHARACTERS : RECORD_CHARACTERS) + 1;
  const elements = form === "grid" ? CELL_ELEMENTS : RECORD_ELEMENTS;
  if (column.kind === "list") {
    return `case when ${cell} is not null then json_build_array(cardinality(${cell}), (select coalesce(json_agg(left(e.one, ${characters})
order by e.at), '[]') from unnest(${cell}[1:${elements}]) with ordinality as e (one, at))${fileDetails(column, elements)}) end`;
  }
  return column.kind === "text" ? `left(${cell}, ${characters})` : `${cell}::text`;
}

/** Another member of the list's JSON. */
function fileDetails({ files }: BrowsedColumn, elements: number): string {
  if (files === undefined) return "";
  const text = (name: string) => `'${name}', left(f.one ->> '${name}', ${CELL_CHARACTERS + 1})`;
  const details = [
    ...["id", "filename", "type"].map(text),
    "'width', f.one -> 'width', 'height', f.one -> 'height'",
  ];
  return `, (select coalesce(json_agg(json_build_object(${details.join(", ")}) order by f.at), '[]')
from jsonb_array_elements(t.${quoteIdent(files)}) with ordinality as f (one, at) where f.at <= ${elements})`;
}

function nameOf({ schema, name }: BrowsedTable): string {
  return `${quoteIdent(schema)}.${quoteIdent(name)}`;
}

function where(conditions: string[]): string {
  return conditions.length === 0 ? "" : `\nwhere ${conditions.join("\n  and ")}`;
}

function isNeverEmpty({ name, fieldId }: BrowsedColumn): boolean {
  return fieldId === undefined && (name === "id" || name === "created_time");
}

/** Callers have checked the names. */
function columnNamed({ columns }: BrowsedTable, name: string): BrowsedColumn {
  const found = columns.find((column) => column.name === name);
  if (!found) throw new Error(`no column ${name}`);
  return found;
}

/** Postgres stores no NUL, so no cell contains one. */
function clean(value: string): string {
  return value.toWellFormed().replaceAll("\0", "\uFFFD");
}
