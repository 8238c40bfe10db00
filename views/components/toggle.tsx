/**
 * A setting that is on or off: a checkbox in a form. With htmx (`hx-post` and the like, passed on to the input) it is
 * sent when it changes; without JavaScript, by the form's button.
 */
import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { More } from "./more";

interface ToggleProps extends Omit<InputHTMLAttributes, "type" | "label" | "name" | "id"> {
  label: string;
  name: string;
  id?: string;
  hint?: ComponentChildren;
  /** More than the hint, on demand. */
  more?: ComponentChildren;
  checked: boolean;
}

export function Toggle({ label, name, id = name, hint, more, checked, ...rest }: ToggleProps) {
  return (
    <div class="toggle">
      <input
        {...rest}
        type="checkbox"
        role="switch"
        id={id}
        name={name}
        value="on"
        checked={checked}
        aria-checked={checked}
        aria-describedby={hint ? `${id}-hint` : undefined}
      />
      <div>
        <label for={id}>{label}</label>
        {hint ? (
          <p class="hint" id={`${id}-hint`}>
            {hint}
          </p>
        ) : null}
        <More about={label}>{more}</More>
      </div>
    </div>
  );
}
