/** A table with a caption for screen readers; on a narrow screen it scrolls by itself, the page does not. */
import type { ComponentChildren } from "preact";

/** @param props.head the columns; one with `isNumber` is aligned to the right, give its cells `class="number"` */
export function Table(props: {
  caption: string;
  head: { text: string; isNumber?: boolean; isHidden?: boolean }[];
  id?: string;
  /** The rows: `<tr>`s. */
  children: ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms, a region for less than every table
    <div class="table-scroll" tabIndex={0} role="group" aria-label={props.caption}>
      <table id={props.id}>
        <caption class="visually-hidden">{props.caption}</caption>
        <thead>
          <tr>
            {props.head.map((column) => (
              <th key={column.text} scope="col" class={column.isNumber ? "number" : undefined}>
                {column.isHidden ? <span class="visually-hidden">{column.text}</span> : column.text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}
