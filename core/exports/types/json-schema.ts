/** JSON Schema (2020-12) of rows as Postgres writes them in JSON (`row_to_json`, PostgREST). */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  POSITION_DOC,
  type TypedColumn,
  type TypedTable,
  type TypedView,
  type TypeModel,
} from "./model";

/** `2024-05-01T12:34:56`, without a zone: UTC. */
const TIMESTAMP = { type: "string", pattern: "^\\d{4,}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?$" };

type Schema = Record<string, unknown>;

export function jsonSchema({ title, tables, views }: TypeModel): string {
  const rows = [
    ...tables.map((table) => [table.typeName, tableSchema(table)] as const),
    ...views.map((view) => [view.typeName, viewSchema(view)] as const),
  ];
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

function tableSchema({ typeName, name, sourceName, doc, columns }: TypedTable): Schema {
  return objectSchema(name, sourceName, doc, [
    ["id", { ...idOf(typeName), description: ID_DOC }],
    ["created_time", { ...TIMESTAMP, description: CREATED_TIME_DOC }],
    ...columns.map((column): [string, Schema] => [column.name, columnSchema(column)]),
  ]);
}

function viewSchema({ name, doc, from, to, columns: [fromId, toId], toDoc, details }: TypedView): Schema {
  return objectSchema(name, name, doc, [
    [fromId, idOf(from.typeName)],
    ["position", { type: "integer", minimum: 1, description: POSITION_DOC }],
    [toId, { ...(to ? idOf(to.typeName) : { type: "string" }), description: toDoc }],
    ...details.map(({ name: detail, kind, isNullable, doc: description }): [string, Schema] => [
      detail,
      { ...orNull({ type: kind === "text" ? "string" : "integer" }, isNullable), description },
    ]),
  ]);
}

function objectSchema(
  table: string,
  title: string,
  description: string,
  properties: [string, Schema][],
): Schema {
  return {
    title,
    description,
    "x-table": table,
    type: "object",
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
  };
}

function columnSchema(column: TypedColumn): Schema {
  const { sourceName: title, doc: description, isList, hasEmptyElements, isNullable } = column;
  const element = orNull(elementSchema(column), hasEmptyElements);
  return { title, description, ...orNull(isList ? { type: "array", items: element } : element, isNullable) };
}

function elementSchema({ kind, linked, choices }: TypedColumn): Schema {
  if (linked) return idOf(linked.typeName);
  // The second part admits choices that were added later.
  if (choices) return { anyOf: [{ enum: choices }, { type: "string" }] };
  return {
    text: { type: "string" },
    numeric: { type: "number" },
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
