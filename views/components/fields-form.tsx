/** A form that is data: each field's label, hint and kind. What was typed stays after an error, which is next to its field. */
import type { ComponentChildren, VNode } from "preact";
import { Button } from "./button";
import { Field, SelectField, TextAreaField } from "./field";
import { ErrorNote } from "./notes";
import { Form } from "./permitted";
import { Toggle } from "./toggle";

interface Asking {
  label: string;
  hint?: ComponentChildren;
  /** What is wrong with a value that the API's schema does not accept; default: what the schema says. */
  wrong?: string;
}

interface TextInput extends Asking {
  kind: "text" | "area";
  /** It may be empty; the request then does not have it. */
  isOptional?: boolean;
  /** Not shown again, and taken exactly as it was typed. */
  isSecret?: boolean;
  inputMode?: "email" | "numeric" | "url";
  type?: "email";
  placeholder?: string;
  maxLength?: number;
  spellcheck?: boolean;
}

interface Choice extends Asking {
  kind: "select";
  options: { value: string; text: string }[];
}

/** Checkboxes, whose value is the list of those that are on. */
interface Switches extends Omit<Asking, "label"> {
  kind: "switches";
  /** Above them. */
  label?: string;
  /** Of the ids: a page may have several. */
  prefix: string;
  options: { value: string; label: string; hint: string }[];
}

/** Drawn by a component of its own, which may read other fields too; without one, by that of another field. */
interface OwnInput extends Asking {
  kind: "own";
  show?: (form: FormState) => VNode;
}

export type FormField = TextInput | Choice | Switches | OwnInput;
/** By the name of the input, which is the name of the property in the API. */
export type FormFields = Record<string, FormField>;

/** A text, or the switches that are on. */
export type Typed = Record<string, string | string[]>;

export interface FormState {
  fields: FormFields;
  typed: Typed;
  /** By field; `form` for one of the whole form. */
  errors: Record<string, string>;
}

/** The text that was typed into a field. */
export function typedText({ typed }: Pick<FormState, "typed">, name: string): string {
  return String(typed[name] ?? "");
}

export function hasErrors({ errors }: FormState): boolean {
  return Object.keys(errors).length > 0;
}

export function FieldsForm(props: { action: string; button: string; form: FormState; isPrimary?: boolean }) {
  const { action, button, form, isPrimary } = props;
  return (
    <Form action={action} class="stack rows">
      {form.errors.form ? <ErrorNote>{form.errors.form}</ErrorNote> : null}
      {Object.entries(form.fields).map(([name, field]) => (
        <Input key={name} name={name} field={field} form={form} />
      ))}
      <Button kind={isPrimary ? "primary" : "plain"}>{button}</Button>
    </Form>
  );
}

function Input({ name, field, form }: { name: string; field: FormField; form: FormState }) {
  const error = form.errors[name];
  if (field.kind === "own") return field.show?.(form) ?? null;
  if (field.kind === "switches") return <SwitchFields {...field} on={form.typed[name] ?? []} error={error} />;
  const question = { label: field.label, hint: field.hint, name, error, value: typedText(form, name) };
  if (field.kind === "select") return <SelectField {...question} options={field.options} />;
  const { kind, isOptional, isSecret, wrong: _, type, ...typing } = field;
  const input = { ...typing, ...question, required: !isOptional };
  if (kind === "area") return <TextAreaField {...input} />;
  return isSecret ? <Field {...input} value={undefined} type="password" /> : <Field {...input} type={type} />;
}

function SwitchFields(props: Switches & { on: readonly string[] | string; error: string | undefined }) {
  const { label, prefix, options, on, error } = props;
  const switches = options.map(({ value, label: text, hint }) => (
    <Toggle
      key={value}
      id={`${prefix}-${value}`}
      name={value}
      label={text}
      hint={hint}
      checked={on.includes(value)}
    />
  ));
  if (label === undefined) return <>{switches}</>;
  return (
    <fieldset class="stack">
      <legend>{label}</legend>
      {error ? <ErrorNote>{error}</ErrorNote> : null}
      {switches}
    </fieldset>
  );
}
