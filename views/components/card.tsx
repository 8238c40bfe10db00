/** A section of a page with its own heading. */
import type { ComponentChildren } from "preact";

/** @param props.actions actions on the whole section, next to the heading */
export function Card(props: {
  id?: string;
  title?: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  const headingId = props.title && props.id ? `${props.id}-heading` : undefined;
  return (
    <section class="card" id={props.id} aria-labelledby={headingId}>
      {props.title || props.actions ? (
        <div class="card-head">
          {props.title ? <h2 id={headingId}>{props.title}</h2> : null}
          {props.actions ? <div class="actions">{props.actions}</div> : null}
        </div>
      ) : null}
      {props.children}
    </section>
  );
}
