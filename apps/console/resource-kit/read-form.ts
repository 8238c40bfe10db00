/** Reads a form as the body of the API's request, so that one schema and one function serve both. */
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { FormField, FormFields, FormState, Typed } from "../../../views/components";
import { formSecret, formText } from "../page-kit";

/** What a form says: the body of the request, or errors by field. */
export interface ReadForm {
  errors: Record<string, string>;
  body: Record<string, unknown>;
  /** What the form shows after an error, if it is not what was typed. */
  typed?: Typed;
}

export function emptyForm(fields: FormFields, typed: Typed = {}): FormState {
  return { fields, typed, errors: {} };
}

/** Returns what was typed: text without surrounding spaces, and the switches that are on. */
export function typedIn(fields: FormFields, form: unknown): Typed {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      if (field.kind !== "switches") {
        const isSecret = field.kind === "text" && field.isSecret;
        return [name, isSecret ? formSecret(form, name).trim() : formText(form, name)];
      }
      return [
        name,
        field.options.map(({ value }) => value).filter((value) => formText(form, value) === "on"),
      ];
    }),
  );
}

/** Returns the body that the fields make: each is the property of its name, unless it is empty and need not be there. */
export function bodyOfTyped(fields: FormFields, typed: Typed): ReadForm {
  const given = Object.entries(typed).filter(([name, value]) => value !== "" || !isOptional(fields[name]));
  return { errors: {}, body: Object.fromEntries(given) };
}

function isOptional(field: FormField | undefined): boolean {
  return field?.kind === "select" || (field?.kind === "text" && field.isOptional === true);
}

/** Returns the errors of the body by field, as the fields and the schema word them. */
export function faultsOf(fields: FormFields, schema: TSchema, body: unknown): Record<string, string> {
  const faults: Record<string, string> = {};
  for (const { path, schema: part } of Value.Errors(schema, body)) {
    // A field of the form may be a part of a part of the body.
    const name = path.split("/").find((part) => Object.hasOwn(fields, part)) ?? "form";
    const field = fields[name];
    faults[name] ??= field ? faultOf(field, part) : "This form is not complete";
  }
  return faults;
}

function faultOf(field: FormField, schema: TSchema): string {
  if (field.wrong !== undefined) return field.wrong;
  if (field.kind === "switches") return "Choose at least one";
  if (schema.maxLength === undefined) return "Choose one of these options";
  return `The ${field.label.toLowerCase()} must have ${schema.minLength ?? 0} to ${schema.maxLength} characters`;
}
