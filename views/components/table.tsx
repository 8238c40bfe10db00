/**
 * A table with a caption for screen readers. On a narrow screen each row is a block of its own, with every value next
 * to the name of its column; other tables scroll by themselves, and the page does not.
 */
import { type ComponentChildren, cloneElement, isValidElement, toChildArray, type VNode } from "preact";
import { Zone } from "./time";

interface Column {
  text: string;
  /** Aligned to the right; give its cells `class="number"`. */
  isNumber?: boolean;
  /** It has times without a zone. */
  isTime?: boolean;
  /** For screen readers only. */
  isHidden?: boolean;
}

/**
 * @param props.onPhone default `blocks`; `fit` for few short columns, which need no change; `scroll` for logs, whose
 *   rows are compared
 */
export function Table(props: {
  caption: string;
  head: Column[];
  id?: string;
  onPhone?: "blocks" | "fit" | "scroll";
  /** The rows: `<tr>`s, or components without hooks that return one. */
  children: ComponentChildren;
}) {
  const { caption, head, id, onPhone = "blocks", children } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms, a region for less than every table
    <div class="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table id={id} class={onPhone}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {head.map((column) => (
              <th key={column.text} scope="col" class={column.isNumber ? "number" : undefined}>
                {column.isHidden ? <span class="visually-hidden">{column.text}</span> : column.text}
                {column.isTime ? <Zone /> : null}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {onPhone === "blocks" ? toChildArray(children).map((row) => labelled(row, head)) : children}
        </tbody>
      </table>
    </div>
  );
}

type Attributes = Record<string, unknown> & { children?: ComponentChildren };

/** The row, each cell with the name of its column for the stylesheet. */
function labelled(row: ComponentChildren, head: Column[]): ComponentChildren {
  if (!isValidElement(row)) return row;
  const { type, props, key } = row as VNode<Attributes>;
  const made = typeof type === "function" ? (type as (props: Attributes) => VNode<Attributes>)(props) : row;
  const cells = toChildArray((made as VNode<Attributes>).props.children).map((cell, index) => {
    const column = head[index];
    const label = column && !column.isHidden ? { "data-label": column.text } : {};
    return isValidElement(cell) && (cell as VNode).type === "td" ? cloneElement(cell as VNode, label) : cell;
  });
  return cloneElement(made as VNode<Attributes>, { key }, cells);
}
