/** The grid of one page of rows: a header that sorts, and a row for each record. */
import { cutText } from "../../core/cut-text";
import { type BrowsedColumn, type BrowsedPage, selectionOf } from "../../core/data-browser";
import { FieldIcon } from "../components/field-type";
import { CellValue, isClipped } from "./cell";
import { recordPath, tablePath } from "./paths";

/** A description is shown up to here. */
const DESCRIPTION_CHARACTERS = 1000;

export function Grid({ baseId, page }: { baseId: string; page: BrowsedPage }) {
  const { table, state, rows, linked } = page;
  const label = `Records of ${table.sourceName}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms, a region for less than every table
    <div class="grid-scroll" tabIndex={0} role="group" aria-label={label} hx-target:inherited="#record">
      <table class="grid">
        <caption class="visually-hidden">{label}</caption>
        <thead>
          <tr>
            {state.shown.map((column) => (
              <Head key={column.name} baseId={baseId} page={page} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ id, cells, issues }) => {
            const path = recordPath(baseId, table.name, id);
            const record = { tableId: table.tableId, id };
            return (
              <tr key={id}>
                {state.shown.map((column, index) => {
                  const value = (
                    <CellValue
                      baseId={baseId}
                      record={record}
                      linked={linked}
                      column={column}
                      cell={cells[index]!}
                    />
                  );
                  const hasIssue = issues.includes(column.name);
                  const clipped = isClipped(cells[index]!) ? "" : undefined;
                  const mark = hasIssue ? <IssueMark /> : null;
                  if (index > 0) {
                    return (
                      <td key={column.name} class={cellClass(column)} data-clipped={clipped}>
                        {value}
                        {mark}
                      </td>
                    );
                  }
                  const isEmpty = cells[0] === null || cells[0] === "";
                  const isText = !isEmpty && column.kind !== "list" && !column.link;
                  return (
                    <th key={column.name} scope="row" data-clipped={clipped}>
                      <a href={path} hx-get={path}>
                        {isText ? value : <span class="muted">{id}</span>}
                      </a>
                      {isText || isEmpty ? null : <> {value}</>}
                      {mark}
                    </th>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A click sorts up, the next one down, the third returns to the usual order. */
function Head({ baseId, page, column }: { baseId: string; page: BrowsedPage; column: BrowsedColumn }) {
  const { table, state } = page;
  const isSorted = state.chosenSort?.column === column.name;
  const next = !isSorted
    ? { column: column.name, isDescending: false }
    : state.sort.isDescending
      ? undefined
      : { column: column.name, isDescending: true };
  const href = tablePath(baseId, table.name, { ...selectionOf(state), sort: next });
  const order = isSorted ? (state.sort.isDescending ? "descending" : "ascending") : undefined;
  const what = `${column.name}${column.display ? `, ${column.display.type.replaceAll("_", " ")}` : ""}`;
  const noteId = `about-${table.columns.indexOf(column)}`;
  return (
    <th
      scope="col"
      class={column.kind === "number" ? "number" : undefined}
      aria-sort={order}
      data-column={column.name}
    >
      <a
        href={href}
        title={column.description ? undefined : what}
        aria-describedby={column.description ? noteId : undefined}
      >
        <FieldIcon type={column.display?.type ?? column.shownAs} />
        {column.sourceName}
        {order ? <span aria-hidden="true">{order === "ascending" ? " ↑" : " ↓"}</span> : null}
      </a>
      {column.description ? (
        <span class="head-note" role="tooltip" id={noteId}>
          <span class="muted">{what}</span>
          {`\n${cutText(column.description, DESCRIPTION_CHARACTERS)}`}
        </span>
      ) : null}
    </th>
  );
}

function IssueMark() {
  return (
    <span
      class="issue-mark"
      role="img"
      aria-label="The value in Airtable does not fit"
      title="The value in Airtable does not fit. Open the record for details"
    />
  );
}

function cellClass({ kind }: BrowsedColumn): string | undefined {
  return kind === "number" ? "number" : kind === "date" || kind === "time" ? "nowrap" : undefined;
}
