/**
 * One field of a form: label, input, hint, and the error next to it, which is read out with the input. Other attributes
 * (`autocomplete`, `hx-get`, …) are passed on to the input. After an error, the invalid input has the focus.
 */
import type { ComponentChildren, JSX } from "preact";
import { More } from "./more";

interface Question {
  label: string;
  name: string;
  /** Default: the name. It must be unique on the page. */
  id?: string | undefined;
  hint?: ComponentChildren;
  /** More than the hint, on demand. */
  more?: ComponentChildren;
  error?: string | undefined;
}

interface Typing {
  value?: string | undefined;
  required?: boolean;
  /** Default `off`: a browser knows only a person's own facts. */
  autocomplete?: string;
  autofocus?: boolean;
  placeholder?: string;
  minLength?: number;
  maxLength?: number;
  spellcheck?: boolean;
  disabled?: boolean;
}

interface FieldProps extends Question, Typing {
  /** Default `text`. */
  type?: "text" | "email" | "password" | "search" | "url" | "number";
  inputMode?: "text" | "email" | "numeric" | "search" | "url";
  pattern?: string;
}

export function Field({ label, name, id = name, hint, more, error, type = "text", ...rest }: FieldProps) {
  // Preact ties an input's role to its type, and these types have only their own.
  const input = {
    autocomplete: "off",
    ...rest,
    ...described(id, hint, error),
    id,
    name,
    type,
  } as JSX.IntrinsicElements["input"];
  return (
    <Frame label={label} id={id} hint={hint} more={more} error={error}>
      {type === "password" ? (
        <div class="secret">
          <input {...input} />
          <ShowButton id={id} label={label} />
        </div>
      ) : (
        <input {...input} />
      )}
    </Frame>
  );
}

/** Shows what is typed into a password field. Its name stays, and screen readers say whether it is pressed. */
function ShowButton({ id, label }: { id: string; label: string }) {
  return (
    <button
      type="button"
      class="button small needs-script"
      aria-pressed="false"
      aria-controls={id}
      data-shows={id}
    >
      Show<span class="visually-hidden"> {label}</span>
    </button>
  );
}

export function TextAreaField({
  label,
  name,
  id = name,
  hint,
  error,
  value,
  ...rest
}: Question & Typing & { rows?: number }) {
  return (
    <Frame label={label} id={id} hint={hint} error={error}>
      <textarea autocomplete="off" {...rest} {...described(id, hint, error)} id={id} name={name}>
        {value}
      </textarea>
    </Frame>
  );
}

/** @param props.options value and text of each choice */
export function SelectField(
  props: Question & {
    options: { value: string; text: string }[];
    value?: string | undefined;
    required?: boolean;
  },
) {
  const { label, name, id = name, hint, error, options, value, required } = props;
  return (
    <Frame label={label} id={id} hint={hint} error={error}>
      <select {...described(id, hint, error)} id={id} name={name} required={required}>
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.text}
          </option>
        ))}
      </select>
    </Frame>
  );
}

function Frame(props: Omit<Question, "name"> & { id: string; children: ComponentChildren }) {
  const { label, id, hint, more, error, children } = props;
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {children}
      {error ? (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      ) : null}
      {hint ? (
        <div>
          <p class="hint" id={`${id}-hint`}>
            {hint}
          </p>
          <More about={label}>{more}</More>
        </div>
      ) : null}
    </div>
  );
}

function described(id: string, hint: ComponentChildren, error: string | undefined) {
  const ids = [error ? `${id}-error` : "", hint ? `${id}-hint` : ""].filter(Boolean).join(" ");
  return {
    "aria-describedby": ids || undefined,
    ...(error && { "aria-invalid": "true" as const, autofocus: true }),
  };
}
