/** A form that opens by its button: lists stay short, and the form works without a script. It is open after an error. */
import type { ComponentChildren } from "preact";
import { useMay } from "./permitted";

/**
 * Nothing if the reader may not send the form.
 *
 * @param props.action where the form is sent
 * @param props.button what the form does: "Add webhook"
 * @param props.isOpen it has errors, or was filled in
 */
export function FormPanel(props: {
  id: string;
  action: string;
  button: string;
  isOpen: boolean;
  children: ComponentChildren;
}) {
  const { id, action, button, isOpen, children } = props;
  if (!useMay()("POST", action)) return null;
  return (
    <details id={id} class="form-panel" open={isOpen}>
      <summary class="button plain">{button}</summary>
      <div class="card">{children}</div>
    </details>
  );
}
