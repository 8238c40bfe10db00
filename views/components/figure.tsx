/** One of the figures of a `<dl class="figures">`: its name, the figure, and what it says. */
import type { ComponentChildren } from "preact";

export function Figure(props: {
  name: ComponentChildren;
  note?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { name, note, children } = props;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
      {note ? <dd class="muted small wrap">{note}</dd> : null}
    </div>
  );
}
