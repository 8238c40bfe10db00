/**
 * Converts the routes' schemas to JSON Schema as generators of clients expect it. The framework's own forms also accept
 * numbers in texts (for queries and forms), and write an enumeration as a union.
 */

import type { JsonSchema } from "../../../views/docs/openapi";
import { COMPONENT } from "../schemas/parts";

/** The formats that mark the framework's numbers in texts. */
const NUMBERS_IN_TEXT = new Set(["integer", "numeric"]);

/** Schemas by name, which the document lists once. */
export type Components = Map<string, JsonSchema>;

type Raw = JsonSchema & { [COMPONENT]?: string };

/** @returns the schema, or a reference to it if it has a name; `components` gets all named schemas in it */
export function toJsonSchema(raw: Raw, components: Components): JsonSchema {
  const { [COMPONENT]: name, ...rest } = raw;
  if (name === undefined) return converted(rest, components);
  if (!components.has(name)) {
    components.set(name, {});
    components.set(name, converted(rest, components));
  }
  return { $ref: `#/components/schemas/${name}` };
}

function converted(raw: JsonSchema, components: Components): JsonSchema {
  const inner = (schema: JsonSchema) => toJsonSchema(schema, components);
  if (raw.anyOf) return convertedUnion(raw, raw.anyOf, components);
  const schema: JsonSchema = { ...raw };
  if (raw.items) schema.items = inner(raw.items);
  if (raw.properties) schema.properties = mapValues(raw.properties, inner);
  // A record with any keys.
  if (raw.patternProperties) {
    delete schema.patternProperties;
    schema.additionalProperties = inner(Object.values(raw.patternProperties)[0]!);
  }
  return schema;
}

function convertedUnion(raw: JsonSchema, anyOf: JsonSchema[], components: Components): JsonSchema {
  const { anyOf: _, ...rest } = raw;
  const forms = anyOf.filter(({ type, format }) => !(type === "string" && NUMBERS_IN_TEXT.has(format ?? "")));
  if (forms.every(({ const: value }) => typeof value === "string")) return enumeration(rest, forms);
  const parts = forms.map((form) => toJsonSchema(form, components));
  const [only, ...others] = parts;
  if (others.length === 0) return { ...only, ...rest };
  const value = parts.find(({ type }) => type !== "null")!;
  const isNullable = parts.length === 2 && parts.some(({ type }) => type === "null");
  if (isNullable && typeof value.type === "string" && !value.enum) {
    return { ...value, ...rest, type: [value.type, "null"] };
  }
  return { ...rest, anyOf: parts };
}

/** The meaning of a value goes to the description of them all. */
function enumeration(rest: JsonSchema, forms: JsonSchema[]): JsonSchema {
  const meanings = forms.flatMap(({ const: value, description }) =>
    description === undefined ? [] : [`\`${value}\`: ${description}`],
  );
  const description = [...(rest.description === undefined ? [] : [rest.description]), ...meanings].join(". ");
  return {
    ...rest,
    type: "string",
    enum: forms.map(({ const: value }) => value),
    ...(description === "" ? {} : { description }),
  };
}

function mapValues<T, R>(values: Record<string, T>, map: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
