/** Pydantic: a model per table, for the rows that psycopg returns as dictionaries. Runs with versions 1.10 and 2. */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  POSITION_DOC,
  type TypedLinkView,
  type TypedTable,
  type TypeModel,
} from "./model";
import { annotation, attributesOf, pythonHead, pythonIds } from "./python-parts";
import { docstring, quoted } from "./text";

/** Attributes of `BaseModel` in versions 1 and 2. */
const RESERVED = `construct copy dict fields from_orm json parse_file parse_obj parse_raw schema schema_json
  update_forward_refs validate`.split(/\s+/);

const IMPORTS = `import datetime
import decimal
import typing

import pydantic
`;

export function pydanticModels(model: TypeModel): string {
  return [
    pythonHead(model, IMPORTS) + pythonIds(model),
    ...model.tables.map(tableModel),
    ...model.links.map(linkModel),
  ].join("\n\n");
}

function tableModel(table: TypedTable): string {
  const { typeName, doc, columns } = table;
  // Version 2 keeps names that begin with `model_` for itself.
  const own = columns.map(({ name }) => name).filter((name) => name.startsWith("model_"));
  const attributes = attributesOf(table, [...RESERVED, ...own]);
  const lines = columns.map((column) => {
    const name = attributes.get(column.fieldId)!;
    const alias = name === column.name ? "" : `alias=${quoted(column.name)}, `;
    const value = column.isNullable ? "None" : "...";
    return `    ${name}: ${annotation(column)} = pydantic.Field(${value}, ${alias}description=${quoted(column.doc)})\n`;
  });
  return `class ${typeName}(pydantic.BaseModel):
${docstring(doc, "    ")}
    id: ${typeName}Id = pydantic.Field(..., description=${quoted(ID_DOC)})
    created_time: datetime.datetime = pydantic.Field(..., description=${quoted(CREATED_TIME_DOC)})
${lines.join("")}`;
}

function linkModel({ typeName, doc, from, to, columns: [fromId, toId] }: TypedLinkView): string {
  const id = (name: string, type: string) =>
    `    ${linkAttribute(name)}: ${type} = pydantic.Field(..., alias=${quoted(name)})\n`;
  return `class ${typeName}(pydantic.BaseModel):
${docstring(doc, "    ")}
${id(fromId, `${from.typeName}Id`)}    position: int = pydantic.Field(..., description=${quoted(POSITION_DOC)})
${id(toId, to ? `${to.typeName}Id` : "str")}`;
}

function linkAttribute(name: string): string {
  const column = { fieldId: "x", name } as TypedTable["columns"][number];
  return attributesOf({ columns: [column] } as TypedTable, RESERVED).get("x")!;
}
