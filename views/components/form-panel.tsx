/** A form that opens by its button: lists stay short, and the form works without a script. It is open after an error. */
import type { ComponentChildren } from "preact";

/**
 * @param props.button what the form does: "Add webhook"
 * @param props.isOpen it has errors, or was filled in
 */
export function FormPanel(props: {
  id: string;
  button: string;
  isOpen: boolean;
  children: ComponentChildren;
}) {
  const { id, button, isOpen, children } = props;
  return (
    <details id={id} class="form-panel" open={isOpen}>
      <summary class="button plain">{button}</summary>
      <div class="card">{children}</div>
    </details>
  );
}
