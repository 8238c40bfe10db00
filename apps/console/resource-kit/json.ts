/** Writes values of the code as JSON of the API: the schema of the answer says which properties there are. */
import type { TSchema } from "@sinclair/typebox";
import { type CamelCase, toCamelCase } from "../../../core/camel-case";

/**
 * A value of the code that can be shown as `Json`: its keys in camel case, or as they are shown; its times as dates. It may
 * have more properties.
 */
export type Shown<Json> = Json extends string
  ? Json | Date
  : Json extends readonly (infer One)[]
    ? readonly Shown<One>[]
    : Json extends object
      ?
          | { [Key in keyof Json as Key extends string ? CamelCase<Key> : Key]: Shown<Json[Key]> }
          | { [Key in keyof Json]: Shown<Json[Key]> }
      : Json;

interface Schema {
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
}

/** @param value a `Shown` of the schema's type */
export function answerJson(schema: TSchema, value: unknown): unknown {
  return shown(schema as Schema, value);
}

function shown(given: Schema, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return value.toISOString();
  const { items, properties } = given.anyOf?.find((one) => one.items ?? one.properties) ?? given;
  if (Array.isArray(value)) return items ? value.map((one) => shown(items, one)) : value;
  // A record: its keys are data.
  if (!properties) return value;
  const facts = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, part]) => {
      // Keys that are data, such as states, are in snake case in the code too.
      const fact = shown(part, facts[Object.hasOwn(facts, name) ? name : toCamelCase(name)]);
      return fact === undefined ? [] : [[name, fact]];
    }),
  );
}
