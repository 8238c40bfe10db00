/**
 * The state of a grid in its URL, so that it can be shared and works without JavaScript: `f`, `o` and `v` repeated for
 * each filter, `q` that any column contains, `sort` and `dir`, `col` repeated for each shown column, `after` or `before` a record, and `n`, the number of
 * the first row.
 */
import { cutText } from "../cut-text";
import type { BrowsedColumn, BrowsedTable } from "./columns";
import { type Filter, filterProblem, isOperator, MOST_CHARACTERS, OPERATORS, operatorsFor } from "./filters";
import type { Cursor, Sort } from "./statements";

/** A filter as it was sent, with its problem. */
export interface StatedFilter {
  column: string;
  operator: string;
  value: string;
  problem?: string | undefined;
}

export interface ViewState {
  filters: StatedFilter[];
  /** What a cell of any column contains; empty: anything. */
  search: string;
  sort: Sort | undefined;
  /** SQL names of the shown columns; none: the first ones. */
  columns: string[];
  /** The columns are those that this browser was told to keep, not a link's. */
  areColumnsKept?: boolean;
  cursor: Cursor | undefined;
  /** The number of the first row, for display only. */
  firstRow: number;
}

/** A state that the table can be read by. */
export interface CheckedState extends Omit<ViewState, "sort"> {
  /** The order that was asked for. */
  chosenSort: Sort | undefined;
  /** The order of the rows: without a choice, the usual one. */
  sort: Sort;
  /** The filters without a problem. */
  usable: Filter[];
  /** The column of a filter whose operator is still to choose. */
  chosenColumn: BrowsedColumn | undefined;
  shown: BrowsedColumn[];
  /** What of the state no longer applies, for people. */
  notes: string[];
}

export const MOST_FILTERS = 10;
/** Columns of a grid unless others were chosen. */
const FIRST_COLUMNS = 12;
export const MOST_COLUMNS = 60;
/** A table with more records is shown in the order of ids: sorting all of them would take too long for a first look. */
const SORTED_BY_AGE = 20_000;

export function readState(query: URLSearchParams): ViewState {
  const [columns, operators, values] = [query.getAll("f"), query.getAll("o"), query.getAll("v")];
  const filters = columns
    .map((column, index) => ({
      column,
      operator: operators[index] ?? "",
      value: (values[index] ?? "").trim(),
    }))
    // The form has an empty line for one more filter.
    .filter(({ column }) => column !== "")
    .slice(0, MOST_FILTERS);
  const sort = query.get("sort");
  const [after, before] = [query.get("after"), query.get("before")];
  const id = after || before;
  const firstRow = Number(query.get("n") ?? 1);
  return {
    filters,
    search: cutText((query.get("q") ?? "").trim(), MOST_CHARACTERS).trim(),
    sort: sort ? { column: sort, isDescending: query.get("dir") === "desc" } : undefined,
    columns: [...new Set(query.getAll("col"))].slice(0, MOST_COLUMNS),
    cursor: id ? { id, isBefore: !after } : undefined,
    firstRow: Number.isSafeInteger(firstRow) && firstRow > 0 ? firstRow : 1,
  };
}

/** The query of a URL for the state, as short as possible. */
export function writeState(state: Partial<ViewState>): string {
  const query = new URLSearchParams();
  for (const { column, operator, value } of state.filters ?? []) {
    query.append("f", column);
    query.append("o", operator);
    query.append("v", value);
  }
  if (state.search) query.set("q", state.search);
  if (state.sort) query.set("sort", state.sort.column);
  if (state.sort?.isDescending) query.set("dir", "desc");
  for (const column of state.columns ?? []) query.append("col", column);
  if (state.cursor) query.set(state.cursor.isBefore ? "before" : "after", state.cursor.id);
  if (state.firstRow && state.firstRow > 1) query.set("n", String(state.firstRow));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** What the links of a page keep: everything but the position. */
export function selectionOf(state: CheckedState): Pick<ViewState, "filters" | "search" | "sort" | "columns"> {
  const { filters, search, chosenSort, columns } = state;
  return { filters, search, sort: chosenSort, columns };
}

/**
 * Checks a state against the table: what names a column that no longer exists is left out with a note, and a filter that
 * is not possible gets its problem.
 *
 * @param records of the table, as far as known
 */
export function checkState(state: ViewState, table: BrowsedTable, records: number | undefined): CheckedState {
  const byName = new Map(table.columns.map((column) => [column.name, column]));
  const notes: string[] = [];
  const filters: StatedFilter[] = [];
  const usable: Filter[] = [];
  let chosenColumn: BrowsedColumn | undefined;
  for (const { column: name, operator: asked, value } of state.filters) {
    const column = byName.get(name);
    if (!column) {
      notes.push(`The link filters by “${name}”, a column that does not exist. The filter is left out.`);
      continue;
    }
    if (asked === "" && value === "") {
      chosenColumn = column;
      continue;
    }
    const operator = asked === "" ? operatorsFor(column)[0]! : asked;
    if (!isOperator(operator)) {
      const problem = `“${cutText(operator, 40)}” is not an operator. Choose one from the list.`;
      filters.push({ column: name, operator, value, problem });
      continue;
    }
    const filter = { column: name, operator, value: OPERATORS[operator].hasValue ? value : "" };
    const problem = filterProblem(filter, column);
    filters.push({ ...filter, problem });
    if (!problem) usable.push(filter);
  }
  const missing = state.columns.filter((name) => !byName.has(name));
  if (missing.length > 0 && !state.areColumnsKept) {
    notes.push(`These columns of the link do not exist: ${missing.map((name) => `“${name}”`).join(", ")}.`);
  }
  if (state.sort && !byName.has(state.sort.column)) {
    notes.push(
      `The link sorts by “${state.sort.column}”, a column that does not exist. The usual order is shown.`,
    );
  }
  const isSorted = state.sort && byName.has(state.sort.column);
  const columns = state.columns.filter((name) => byName.has(name));
  return {
    ...state,
    filters,
    usable,
    chosenColumn,
    notes,
    columns,
    chosenSort: isSorted ? state.sort : undefined,
    sort: isSorted ? state.sort! : usualSort(records),
    // The position was in another order.
    ...(state.sort && !isSorted ? { cursor: undefined, firstRow: 1 } : {}),
    shown: shownColumns(table, columns),
  };
}

function usualSort(records: number | undefined): Sort {
  const isSmall = records !== undefined && records <= SORTED_BY_AGE;
  return { column: isSmall ? "created_time" : "id", isDescending: false };
}

/** The primary column first; the others as chosen, in the order of the table. */
function shownColumns({ columns, primary }: BrowsedTable, chosen: string[]): BrowsedColumn[] {
  const fields = columns.filter((column) => column !== primary);
  const others =
    chosen.length > 0
      ? fields.filter(({ name }) => chosen.includes(name))
      : fields.filter(({ fieldId }) => fieldId !== undefined).slice(0, FIRST_COLUMNS - 1);
  return [primary, ...others];
}
