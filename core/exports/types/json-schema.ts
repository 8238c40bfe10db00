/** JSON Schema (2020-12) of rows as Postgres writes them in JSON (`row_to_json`, PostgREST). */
import { POSITION, type RowColumn, type TypedTable, type TypedView, type TypeModel } from "./model";

/** `2024-05-01T12:34:56`, without a zone: UTC. */
const TIMESTAMP = { type: "string", pattern: "^\\d{4,}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?$" };

type Schema = Record<string, unknown>;

export function jsonSchema({ title, tables, relations }: TypeModel): string {
  const rows = relations.map((one) => [one.typeName, objectSchema(one)] as const);
  const ids = tables.map(({ id, typeName, sourceName }) => {
    const description = `The id of a record of ${sourceName} (${id})`;
    return [`${typeName}Id`, { type: "string", description }] as const;
  });
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    $defs: Object.fromEntries([...ids, ...rows]),
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function objectSchema(one: TypedTable | TypedView): Schema {
  return {
    title: "sourceName" in one ? one.sourceName : one.name,
    description: one.doc,
    "x-table": one.name,
    type: "object",
    properties: Object.fromEntries(one.row.map((column) => [column.name, columnSchema(column)])),
    required: one.row.map(({ name }) => name),
  };
}

function columnSchema(column: RowColumn): Schema {
  const { spec, doc: description, isList, hasEmptyElements, isNullable } = column;
  const title = spec?.sourceName;
  const element = orNull(elementSchema(column), hasEmptyElements);
  return { title, description, ...orNull(isList ? { type: "array", items: element } : element, isNullable) };
}

function elementSchema({ kind, linked, choices, name }: RowColumn): Schema {
  if (linked) return idOf(linked.typeName);
  // The second part admits choices that were added later.
  if (choices) return { anyOf: [{ enum: choices }, { type: "string" }] };
  return {
    text: { type: "string" },
    numeric: { type: "number" },
    integer: { type: "integer", ...(name === POSITION.name && { minimum: 1 }) },
    bigint: { type: "integer" },
    bool: { type: "boolean" },
    date: { type: "string", format: "date" },
    timestamp: TIMESTAMP,
  }[kind];
}

function orNull(schema: Schema, isNullable: boolean): Schema {
  if (!isNullable) return schema;
  return typeof schema.type === "string"
    ? { ...schema, type: [schema.type, "null"] }
    : { anyOf: [schema, { type: "null" }] };
}

function idOf(typeName: string): Schema {
  return { $ref: `#/$defs/${typeName}Id` };
}
