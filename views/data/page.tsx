/** The data browser of a base: its tables, and a page of one of them. */
import type { ComponentChildren } from "preact";
import type { Base } from "../../core/control/bases";
import {
  type BrowsedPage,
  browsableTables,
  PAGE_ROWS,
  SEARCH_MS,
  selectionOf,
  type ViewState,
} from "../../core/data-browser";
import { factsOf } from "../../core/source";
import { Empty, NewTabLink, Note } from "../components";
import { formatDuration, inDigits } from "../format";
import { Grid } from "./grid";
import { tablePath } from "./paths";
import { Tools } from "./tools";

/** A query that takes longer gets a hint how to make it faster, ms. */
const SLOW_MS = 1000;

/**
 * @param props.children the table, or why it cannot be shown
 * @param props.panel the record that is open at the side
 */
export function DataFrame(props: {
  base: Base;
  table?: string | undefined;
  panel?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { base, table, panel, children } = props;
  const tables = browsableTables(base);
  return (
    <div class="data">
      {tables.length === 0 ? null : (
        <nav class="data-tables" aria-label="Tables">
          {tables.map(({ name, source_name, records }) => (
            <a key={name} href={tablePath(base.id, name)} aria-current={name === table ? "page" : undefined}>
              <bdi>{source_name}</bdi> <span class="muted">{inDigits(records)}</span>
            </a>
          ))}
          <a
            class="data-base"
            href={factsOf(base.platform).recordUrl(base.sourceBaseId)}
            target="_blank"
            rel="noopener noreferrer"
          >
            <span>
              Base in Airtable<span class="visually-hidden">, in a new tab</span>
            </span>
            <span aria-hidden="true">↗</span>
          </a>
        </nav>
      )}
      <div class="data-main">{children}</div>
      {/* An open one is no popover without the script, which would be hidden. */}
      <div
        id="record"
        class="side-panel"
        role="dialog"
        aria-labelledby="record-title"
        popover={panel ? undefined : "auto"}
      >
        {panel}
      </div>
    </div>
  );
}

/** Before the first sync has finished. */
export function NoTables({ base }: { base: Base }) {
  return (
    <Empty title="No tables yet" action={<a href={`/bases/${base.id}`}>Show the progress</a>}>
      {base.error
        ? "The first sync has not completed. The overview says why."
        : "Each table appears here as soon as the first sync has read it."}
    </Empty>
  );
}

export function TablePage({ base, page }: { base: Base; page: BrowsedPage }) {
  const { table, state, rows } = page;
  const hasProblem = state.filters.some(({ problem }) => problem);
  return (
    <>
      <div class="data-head">
        <h2>
          <bdi>{table.sourceName}</bdi>
        </h2>
        <code class="muted">{table.name}</code>
        {table.tableId === undefined ? null : (
          <NewTabLink
            class="data-out small"
            href={factsOf(base.platform).recordUrl(base.sourceBaseId, table.tableId)}
          >
            Open in Airtable
          </NewTabLink>
        )}
      </div>
      <Notes base={base} page={page} />
      <Tools baseId={base.id} page={page} />
      {hasProblem ? null : rows.length === 0 ? (
        <NoRows base={base} page={page} />
      ) : (
        <Grid baseId={base.id} page={page} />
      )}
      {hasProblem || rows.length === 0 ? null : <Pager baseId={base.id} page={page} />}
    </>
  );
}

function Notes({ base, page }: { base: Base; page: BrowsedPage }) {
  const { state, table, tookMs, isCursorGone, isSearchCut } = page;
  const sorted = table.columns.find(({ name }) => name === state.sort.column);
  const isSlow = tookMs > SLOW_MS;
  return (
    <>
      {base.state === "active" || base.state === "starting" ? null : (
        <Note tone="warn">
          {base.sync ? "These rows are as of the last sync. " : ""}
          <a href={`/bases/${base.id}`}>See why syncing has stopped</a>
        </Note>
      )}
      {state.notes.length === 0 ? null : (
        <Note tone="warn">
          {state.notes.map((note) => (
            <p key={note}>{note}</p>
          ))}
        </Note>
      )}
      {isCursorGone ? (
        <Note tone="warn">The record where this page began no longer exists. This is the first page.</Note>
      ) : null}
      {isSearchCut ? (
        <Note tone="warn">
          The search was stopped after {SEARCH_MS / 1000} seconds: these are the records found until then. Add
          a filter to search fewer records.
        </Note>
      ) : isSlow ? (
        <Note>
          This page took {formatDuration(tookMs)}.{" "}
          {sorted && !sorted.isIndexed ? (
            <IndexHint base={base} table={table.name} column={sorted.name} />
          ) : null}
        </Note>
      ) : null}
    </>
  );
}

/** Where to add an index, and which. */
export function IndexHint({ base, table, column }: { base: Base; table: string; column: string }) {
  return (
    <>
      Sorting is faster with an index: add{" "}
      <code>
        {table}.{column}
      </code>{" "}
      under <a href={`/bases/${base.id}/settings#indexes`}>Settings, Indexes</a>.
    </>
  );
}

function NoRows({ base, page }: { base: Base; page: BrowsedPage }) {
  const { state, table } = page;
  if (state.usable.length === 0 && state.search === "") {
    return <Empty title="No records">This table has no records in Airtable.</Empty>;
  }
  const href = tablePath(base.id, table.name, { ...selectionOf(state), filters: [], search: "" });
  const what =
    state.search === ""
      ? "all filters"
      : state.usable.length === 0
        ? "the search"
        : "the search and all filters";
  return (
    <Empty title="No records match" action={<a href={href}>Remove {what}</a>}>
      {state.search === ""
        ? "Change a filter to see more."
        : page.isSearchCut
          ? "None was found until the search was stopped."
          : "No cell of any column contains the text."}
    </Empty>
  );
}

function Pager({ baseId, page }: { baseId: string; page: BrowsedPage }) {
  const { table, state, rows, hasPrevious, hasNext, count } = page;
  const common = { ...selectionOf(state), sort: state.sort };
  const to = (change: Partial<ViewState>) => tablePath(baseId, table.name, { ...common, ...change });
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const end = state.firstRow + rows.length - 1;
  return (
    <nav class="pager" aria-label="Pages">
      <span class="muted" role="status">
        {inDigits(state.firstRow)}–{inDigits(end)}
        {count === undefined ? "" : ` of ${inDigits(Math.max(count.rows, end))}${count.isMore ? "+" : ""}`}
      </span>
      {hasPrevious ? <a href={to({ sort: state.chosenSort })}>First</a> : null}
      {hasPrevious ? (
        <a
          rel="prev"
          class="button small"
          href={to({
            cursor: { id: first.id, isBefore: true },
            firstRow: Math.max(1, state.firstRow - PAGE_ROWS),
          })}
        >
          Previous
        </a>
      ) : null}
      {hasNext ? (
        <a
          rel="next"
          class="button small"
          href={to({ cursor: { id: last.id, isBefore: false }, firstRow: end + 1 })}
        >
          Next
        </a>
      ) : null}
    </nav>
  );
}
