/** The tools above a grid: filters, columns, downloads. All of them are links and forms that change the URL. */
import {
  type BrowsedColumn,
  type BrowsedPage,
  MOST_COLUMNS,
  MOST_FILTERS,
  OPERATORS,
  OPERATORS_OF,
  type StatedFilter,
} from "../../core/data-browser";
import { Button } from "../components";
import { counted } from "../format";
import { downloadPath, tablePath } from "./paths";

interface ToolsProps {
  baseId: string;
  page: BrowsedPage;
}

export function Tools({ baseId, page }: ToolsProps) {
  const { state, table } = page;
  const hasProblem = state.filters.some(({ problem }) => problem);
  const download = { filters: state.filters, sort: state.chosenSort, columns: state.columns };
  return (
    <div class="data-tools">
      <details class="tool" open={hasProblem}>
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

function FilterForm({ baseId, page }: ToolsProps) {
  const { table, state } = page;
  const isFull = state.filters.length >= MOST_FILTERS;
  return (
    <form class="tool-panel filters" action={tablePath(baseId, table.name)}>
      <Kept page={page} isKept={{ sort: true, columns: true }} />
      {state.filters.map((filter, index) => (
        <FilterLine
          key={`${index} ${filter.column}`}
          baseId={baseId}
          page={page}
          filter={filter}
          number={index + 1}
          without={state.filters.filter((_, other) => other !== index)}
        />
      ))}
      {isFull ? null : <FilterLine baseId={baseId} page={page} number={state.filters.length + 1} />}
      <div class="actions">
        <Button kind="primary" isSmall>
          Apply
        </Button>
        {state.filters.length === 0 ? null : (
          <a href={tablePath(baseId, table.name, { sort: state.chosenSort, columns: state.columns })}>
            Remove all
          </a>
        )}
      </div>
    </form>
  );
}

function FilterLine(props: ToolsProps & { number: number; filter?: StatedFilter; without?: StatedFilter[] }) {
  const { baseId, page, number, filter, without } = props;
  const { columns, name } = page.table;
  const column = columns.find((one) => one.name === filter?.column);
  const errorId = filter?.problem ? `filter-${number}-error` : undefined;
  return (
    <div class={filter?.problem ? "filter-line wrong" : "filter-line"}>
      <select name="f" aria-label={`Filter ${number}: column`}>
        {filter ? null : <option value="">Column…</option>}
        {columns.map((one) => (
          <option key={one.name} value={one.name} selected={one === column}>
            {one.sourceName}
          </option>
        ))}
      </select>
      <select name="o" aria-label={`Filter ${number}: operator`}>
        {column ? <OperatorsOf column={column} chosen={filter?.operator} /> : <AllOperators />}
      </select>
      <input
        name="v"
        value={filter?.value ?? ""}
        aria-label={`Filter ${number}: value`}
        aria-invalid={errorId ? "true" : undefined}
        aria-describedby={errorId}
        autofocus={errorId !== undefined}
        placeholder="Value"
        autocomplete="off"
        maxLength={500}
      />
      {without ? (
        <a
          class="button quiet small"
          href={tablePath(baseId, name, {
            filters: without,
            sort: page.state.chosenSort,
            columns: page.state.columns,
          })}
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

function OperatorsOf({ column, chosen }: { column: BrowsedColumn; chosen: string | undefined }) {
  return (
    <>
      {OPERATORS_OF[column.kind].map((operator) => (
        <option key={operator} value={operator} selected={operator === chosen}>
          {OPERATORS[operator].text}
        </option>
      ))}
    </>
  );
}

/** Before a column is known. Without a choice, the first operator of the column's kind applies. */
function AllOperators() {
  const groups: [string, keyof typeof OPERATORS_OF][] = [
    ["Text", "text"],
    ["List", "list"],
    ["Number", "number"],
    ["Date", "date"],
    ["Checkbox", "checkbox"],
  ];
  const any = ["empty", "not_empty"] as const;
  return (
    <>
      <option value="">matches</option>
      {any.map((operator) => (
        <option key={operator} value={operator}>
          {OPERATORS[operator].text}
        </option>
      ))}
      {groups.map(([label, kind]) => (
        <optgroup key={kind} label={label}>
          {OPERATORS_OF[kind]
            .filter((operator) => operator !== "empty" && operator !== "not_empty")
            .map((operator) => (
              <option key={operator} value={operator}>
                {OPERATORS[operator].text}
              </option>
            ))}
        </optgroup>
      ))}
    </>
  );
}

function ColumnForm({ baseId, page }: ToolsProps) {
  const { table, state } = page;
  return (
    <form class="tool-panel" action={tablePath(baseId, table.name)}>
      <Kept page={page} isKept={{ sort: true, filters: true }} />
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
      <div class="actions">
        <Button kind="primary" isSmall>
          Show
        </Button>
        <a href={tablePath(baseId, table.name, { sort: state.chosenSort, filters: state.filters })}>Reset</a>
      </div>
    </form>
  );
}

/** The rest of the state, which a form of one part keeps. */
function Kept({
  page: { state },
  isKept,
}: {
  page: BrowsedPage;
  isKept: { sort?: boolean; filters?: boolean; columns?: boolean };
}) {
  return (
    <>
      {isKept.sort && state.chosenSort ? (
        <input type="hidden" name="sort" value={state.chosenSort.column} />
      ) : null}
      {isKept.sort && state.chosenSort?.isDescending ? <input type="hidden" name="dir" value="desc" /> : null}
      {isKept.columns
        ? state.columns.map((name) => <input key={name} type="hidden" name="col" value={name} />)
        : null}
      {isKept.filters
        ? state.filters.flatMap(({ column, operator, value }, index) => [
            <input key={`f${index}`} type="hidden" name="f" value={column} />,
            <input key={`o${index}`} type="hidden" name="o" value={operator} />,
            <input key={`v${index}`} type="hidden" name="v" value={value} />,
          ])
        : null}
    </>
  );
}
