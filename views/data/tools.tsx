/** The tools above a grid: filters, columns, downloads. All of them are links and forms that change the URL. */
import {
  type BrowsedColumn,
  type BrowsedPage,
  choicesOfColumn,
  type FilterOperator,
  isOperator,
  MOST_CHARACTERS,
  MOST_COLUMNS,
  MOST_FILTERS,
  OPERATORS,
  OPERATORS_OF,
  operatorsFor,
  type StatedFilter,
  selectionOf,
  type ViewState,
  writeState,
} from "../../core/data-browser";
import { Button } from "../components";
import { counted } from "../format";
import { downloadPath, filtersPath, tablePath } from "./paths";

interface ToolsProps {
  baseId: string;
  page: BrowsedPage;
}

/** What a form needs of the page. */
interface FormProps {
  baseId: string;
  page: Pick<BrowsedPage, "table" | "state">;
}

export function Tools({ baseId, page }: ToolsProps) {
  const { state, table } = page;
  const hasProblem = state.filters.some(({ problem }) => problem);
  const download = selectionOf(state);
  return (
    <div class="data-tools">
      <details class="tool" open={hasProblem || state.chosenColumn !== undefined}>
        <summary class="button small">
          {state.filters.length === 0 ? "Filter" : counted(state.filters.length, "filter")}
        </summary>
        <FilterForm baseId={baseId} page={page} />
      </details>
      <details class="tool">
        <summary class="button small">
          Columns <span class="muted">{state.shown.length}</span>
        </summary>
        <ColumnForm baseId={baseId} page={page} />
      </details>
      <search>
        <form class="data-search" action={tablePath(baseId, table.name)}>
          <Kept state={{ ...selectionOf(state), search: "" }} />
          <input
            type="search"
            name="q"
            value={state.search}
            placeholder="Search all columns"
            aria-label="Search all columns"
            autocomplete="off"
            maxLength={MOST_CHARACTERS}
          />
        </form>
      </search>
      <span id="grid-status" class="small muted" role="status" />
      <span class="tool-end">
        <a class="button quiet small" href={downloadPath(baseId, table.name, "csv", download)} download>
          CSV
        </a>
        <a class="button quiet small" href={downloadPath(baseId, table.name, "json", download)} download>
          JSON
        </a>
      </span>
    </div>
  );
}

/**
 * The lines of filters. A column that is chosen brings its operators: by the script at once, without it by *Apply*.
 *
 * @param props.isDraft the lines were not sent yet, so nothing is wrong with them
 */
export function FilterForm({ baseId, page, isDraft }: FormProps & { isDraft?: boolean }) {
  const { table, state } = page;
  const { filters, chosenColumn } = state;
  const isFull = filters.length >= MOST_FILTERS;
  const isOfDays = [...filters.map(({ column }) => columnOf(page, column)), chosenColumn].some(
    (column) => column?.kind === "date" || column?.kind === "time",
  );
  return (
    <form
      id="filters"
      class="tool-panel filters"
      action={tablePath(baseId, table.name)}
      // Of the form, which sends the lines in their order: a column's own request would send its value before all others.
      hx-get={filtersPath(baseId, table.name)}
      hx-trigger='change target:"[name=f]"'
      hx-swap="outerMorph"
    >
      <Kept state={{ ...selectionOf(state), filters: [] }} />
      {filters.map((filter, index) => (
        <FilterLine
          key={`${index} ${filter.column}`}
          baseId={baseId}
          page={page}
          filter={isDraft ? { ...filter, problem: undefined } : filter}
          number={index + 1}
          without={filters.filter((_, other) => other !== index)}
        />
      ))}
      {isFull ? null : (
        <FilterLine
          baseId={baseId}
          page={page}
          number={filters.length + 1}
          filter={chosenColumn && { column: chosenColumn.name, operator: "", value: "" }}
        />
      )}
      {isOfDays ? <p class="muted small">Days begin at midnight UTC, weeks on Monday.</p> : null}
      <div class="actions">
        <Button kind="primary" isSmall>
          Apply
        </Button>
        {filters.length === 0 ? null : (
          <a href={tablePath(baseId, table.name, { ...selectionOf(state), filters: [] })}>Remove all</a>
        )}
      </div>
    </form>
  );
}

function FilterLine(props: FormProps & { number: number; filter?: StatedFilter; without?: StatedFilter[] }) {
  const { baseId, page, number, filter, without } = props;
  const { columns, name } = page.table;
  const column = columnOf(page, filter?.column);
  const errorId = filter?.problem ? `filter-${number}-error` : undefined;
  return (
    <div class={filter?.problem ? "filter-line wrong" : "filter-line"}>
      <select id={`filter-${number}`} name="f" aria-label={`Filter ${number}: column`}>
        {without ? null : <option value="">Column…</option>}
        {columns.map((one) => (
          <option key={one.name} value={one.name} selected={one === column}>
            {one.sourceName}
          </option>
        ))}
      </select>
      {column ? <Comparison {...props} column={column} filter={filter!} errorId={errorId} /> : null}
      {without ? (
        <a
          class="button quiet small"
          href={tablePath(baseId, name, { ...selectionOf(page.state), filters: without })}
        >
          Remove<span class="visually-hidden"> filter {number}</span>
        </a>
      ) : null}
      {errorId ? (
        <p class="field-error" id={errorId} role="alert">
          {filter!.problem}
        </p>
      ) : null}
    </div>
  );
}

/** The operators that fit the column, and its kind of value. The style hides the value of an operator without one. */
function Comparison(props: {
  number: number;
  column: BrowsedColumn;
  filter: StatedFilter;
  errorId: string | undefined;
}) {
  const { number, column, filter, errorId } = props;
  const fitting = operatorsFor(column);
  const isKnown = isOperator(filter.operator) && OPERATORS_OF[column.kind].includes(filter.operator);
  const chosen = isKnown ? filter.operator : undefined;
  // A link may have one that the form does not offer.
  const offered = [...new Set([...fitting, ...(isOperator(chosen ?? "") ? [chosen as FilterOperator] : [])])];
  const value = isKnown ? filter.value : "";
  const input = {
    name: "v",
    "aria-label": `Filter ${number}: value`,
    "aria-invalid": errorId ? ("true" as const) : undefined,
    "aria-describedby": errorId,
    autofocus: errorId !== undefined,
  };
  const choices = fitting.includes((chosen ?? fitting[0]) as FilterOperator)
    ? choicesOfColumn(column)
    : undefined;
  // A date field shows nothing of a text that is not a date.
  const typed =
    column.kind === "date" && !errorId
      ? ({ type: "date" } as const)
      : ({ type: "text", inputMode: column.kind === "number" ? "decimal" : undefined } as const);
  const takesValue = offered.some((operator) => OPERATORS[operator].hasValue);
  return (
    <>
      <select name="o" aria-label={`Filter ${number}: operator`}>
        {offered.map((operator) => (
          <option
            key={operator}
            class={OPERATORS[operator].hasValue ? undefined : "bare"}
            value={operator}
            selected={operator === chosen}
          >
            {OPERATORS[operator].text}
          </option>
        ))}
      </select>
      {!takesValue ? (
        <input type="hidden" name="v" value="" />
      ) : choices ? (
        <select {...input}>
          <option value="">Choose…</option>
          {[...new Set([...choices, ...(value ? [value] : [])])].map((one) => (
            <option key={one} value={one} selected={one === value}>
              {one}
            </option>
          ))}
        </select>
      ) : (
        <input
          {...input}
          {...typed}
          value={value}
          placeholder={PLACEHOLDERS[column.kind] ?? "Value"}
          autocomplete="off"
          maxLength={MOST_CHARACTERS}
        />
      )}
    </>
  );
}

const PLACEHOLDERS: Partial<Record<BrowsedColumn["kind"], string>> = {
  number: "Number",
  time: "2026-11-22 or 2026-11-22 14:30",
};

function columnOf({ table }: FormProps["page"], name: string | undefined): BrowsedColumn | undefined {
  return table.columns.find((column) => column.name === name);
}

function ColumnForm({ baseId, page }: FormProps) {
  const { table, state } = page;
  return (
    <form class="tool-panel" action={tablePath(baseId, table.name)}>
      <Kept state={{ ...selectionOf(state), columns: [] }} />
      <fieldset class="column-list">
        <legend class="visually-hidden">Shown columns, at most {MOST_COLUMNS}</legend>
        {table.columns
          .filter((column) => column !== table.primary)
          .map((column) => (
            <label key={column.name}>
              <input type="checkbox" name="col" value={column.name} checked={state.shown.includes(column)} />
              <bdi>{column.sourceName}</bdi>
            </label>
          ))}
      </fieldset>
      {table.columns.length > MOST_COLUMNS ? (
        <p class="muted small">At most {MOST_COLUMNS} are shown at once.</p>
      ) : null}
      <div class="actions">
        <Button kind="primary" isSmall name="keep" value="shown">
          Show
        </Button>
        <Button kind="quiet" isSmall name="keep" value="usual">
          Reset
        </Button>
      </div>
    </form>
  );
}

/** The rest of the state, which a form of one part keeps. */
function Kept({ state }: { state: Partial<ViewState> }) {
  return (
    <>
      {[...new URLSearchParams(writeState(state))].map(([name, value], index) => (
        <input key={`${index} ${name}`} type="hidden" name={name} value={value} />
      ))}
    </>
  );
}
