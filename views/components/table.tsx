/**
 * A table with a caption for screen readers. On a narrow screen each row is a block of its own, with every value next
 * to the name of its column; other tables scroll by themselves, and the page does not.
 */
import type { ComponentChildren } from "preact";
import { Zone } from "./time";

interface ColumnLook<Row> {
  text: string;
  /** Its cells name their rows. */
  isHead?: boolean;
  /** Of its cells; those of numbers also have `number`. */
  class?: string | ((row: Row) => string | undefined);
  /** Aligned to the right. */
  isNumber?: boolean;
  /** It has times without a zone. */
  isTime?: boolean;
  /** Its name is for screen readers only. */
  isHidden?: boolean;
}

interface Column<Row> extends ColumnLook<Row> {
  /** What a row has there. */
  cell(row: Row): ComponentChildren;
}

/** Makes a column, by its name alone or with its look. */
type ColumnMaker<Row> = (look: string | ColumnLook<Row>, cell: Column<Row>["cell"]) => Column<Row>;

/**
 * @param props.empty in place of a table without rows
 * @param props.idOf the id of a row's element
 * @param props.onPhone default `blocks`; `fit` for few short columns, which need no change; `scroll` for logs, whose
 *   rows are compared
 */
export function Table<Row>(props: {
  caption: string;
  columns: (column: ColumnMaker<Row>) => Column<Row>[];
  rows: readonly Row[];
  empty?: ComponentChildren;
  idOf?: (row: Row) => string;
  onPhone?: "blocks" | "fit" | "scroll";
  class?: string;
}) {
  const { caption, rows, empty, idOf, onPhone = "blocks", class: own } = props;
  if (empty !== undefined && rows.length === 0) return <>{empty}</>;
  const columns = props.columns((look, cell) => ({
    ...(typeof look === "string" ? { text: look } : look),
    cell,
  }));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms, a region for less than every table
    <div class="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table class={own ? `${onPhone} ${own}` : onPhone}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.text} scope="col" class={column.isNumber ? "number" : undefined}>
                {column.isHidden ? <span class="visually-hidden">{column.text}</span> : column.text}
                {column.isTime ? <Zone /> : null}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index} id={idOf?.(row)}>
              {columns.map((column) => (
                <Cell key={column.text} column={column} row={row} isLabelled={onPhone === "blocks"} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** With the name of its column for the stylesheet. */
function Cell<Row>(props: { column: Column<Row>; row: Row; isLabelled: boolean }) {
  const { column, row, isLabelled } = props;
  const { text, isHead, isNumber, isHidden } = column;
  const own = typeof column.class === "function" ? column.class(row) : column.class;
  const look = [isNumber && "number", own].filter(Boolean).join(" ") || undefined;
  const content = column.cell(row);
  if (isHead) {
    return (
      <th scope="row" class={look}>
        {content}
      </th>
    );
  }
  return (
    <td class={look} data-label={isLabelled && !isHidden ? text : undefined}>
      {content}
    </td>
  );
}
