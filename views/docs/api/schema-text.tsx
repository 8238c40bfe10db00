/** How the reference shows schemas: the type of a value in words, and the fields of an object. */
import { Fragment, type VNode } from "preact";
import type { JsonSchema } from "../openapi";

export interface ApiField {
  /** Of a field within another: `progress.tables[].name`. */
  name: string;
  schema: JsonSchema;
  isRequired: boolean;
}

/** The name of the component that a schema refers to. */
export function refName({ $ref }: JsonSchema): string | undefined {
  return $ref?.slice($ref.lastIndexOf("/") + 1);
}

export const objectAnchor = (name: string) => `object-${name.toLowerCase()}`;

/** The fields of an object; those of objects without a name are listed with it. */
export function fieldsOf(schema: JsonSchema, prefix = ""): ApiField[] {
  return Object.entries(schema.properties ?? {}).flatMap(([property, part]) => {
    const name = prefix + property;
    const isRequired = (schema.required ?? []).includes(property);
    return [{ name, schema: part, isRequired }, ...innerFields(part, name)];
  });
}

function innerFields(schema: JsonSchema, name: string): ApiField[] {
  if (schema.properties) return fieldsOf(schema, `${name}.`);
  if (schema.items) return innerFields(schema.items, `${name}[]`);
  const forms = (schema.anyOf ?? []).filter((form) => form.properties ?? form.items);
  // The forms of a choice have names, or only one of them is an object.
  return forms.length === 1 ? innerFields(forms[0]!, name) : [];
}

export function TypeText({ schema }: { schema: JsonSchema }): VNode {
  const name = refName(schema);
  if (name !== undefined) return <a href={`#${objectAnchor(name)}`}>{name}</a>;
  if (schema.const !== undefined) return <code>{JSON.stringify(schema.const)}</code>;
  if (schema.enum) return <Joined parts={schema.enum.map((value) => <code>{JSON.stringify(value)}</code>)} />;
  if (schema.anyOf) return <Joined parts={schema.anyOf.map((form) => <TypeText schema={form} />)} />;
  if (schema.items) {
    return (
      <>
        array of <TypeText schema={schema.items} />
      </>
    );
  }
  const types = [schema.type ?? "any"].flat().map((type) => (type === "string" && schema.format) || type);
  return <>{types.join(" or ")}</>;
}

function Joined({ parts }: { parts: VNode[] }) {
  return (
    <>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 ? " or " : ""}
          {part}
        </Fragment>
      ))}
    </>
  );
}

/** The limits of a value, in words. */
export function limitsOf(schema: JsonSchema): string {
  const { minimum, maximum, maxLength, maxItems } = schema;
  return [
    minimum === undefined ? "" : maximum === undefined ? `at least ${minimum}` : `${minimum} to ${maximum}`,
    maxLength === undefined ? "" : `at most ${maxLength} characters`,
    maxItems === undefined ? "" : `at most ${maxItems} entries`,
  ]
    .filter((text) => text !== "")
    .join(", ");
}
