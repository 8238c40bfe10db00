/** The h1 of a page, its description, and its actions. */
import type { ComponentChildren } from "preact";

export function PageHead(props: {
  title: ComponentChildren;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <div class="page-head">
      <div>
        <h1>{props.title}</h1>
        {props.lead ? <p class="lead">{props.lead}</p> : null}
      </div>
      {props.actions ? <div class="actions">{props.actions}</div> : null}
    </div>
  );
}
