/** The h1 of a page, its description, and its actions. */
import type { ComponentChildren } from "preact";

export function PageHead(props: {
  title: ComponentChildren;
  lead?: ComponentChildren;
  /** The previous page: `{ href, text }`. */
  back?: { href: string; text: string };
  actions?: ComponentChildren;
}) {
  return (
    <div class="page-head">
      <div>
        {props.back ? (
          <a class="back small" href={props.back.href}>
            <span aria-hidden="true">← </span>
            {props.back.text}
          </a>
        ) : null}
        <h1>{props.title}</h1>
        {props.lead ? <p class="lead">{props.lead}</p> : null}
      </div>
      {props.actions ? <div class="actions">{props.actions}</div> : null}
    </div>
  );
}
