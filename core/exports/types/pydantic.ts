/** Pydantic: a model per table, for the rows that psycopg returns as dictionaries. Runs with versions 1.10 and 2. */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  POSITION_DOC,
  type TypedDetail,
  type TypedTable,
  type TypedView,
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

_validator = getattr(pydantic, "field_validator", None) or pydantic.validator


class _Row(pydantic.BaseModel):
    @_validator("*")
    @classmethod
    def _in_utc(cls, value: typing.Any) -> typing.Any:
        """Columns of times have no zone: they contain UTC."""
        if isinstance(value, datetime.datetime) and value.tzinfo is None:
            return value.replace(tzinfo=datetime.timezone.utc)
        return value


`;

export function pydanticModels(model: TypeModel): string {
  return [
    pythonHead(model, IMPORTS) + pythonIds(model),
    ...model.tables.map(tableModel),
    ...model.views.map(viewModel),
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
  return `class ${typeName}(_Row):
${docstring(doc, "    ")}
    id: ${typeName}Id = pydantic.Field(..., description=${quoted(ID_DOC)})
    created_time: datetime.datetime = pydantic.Field(..., description=${quoted(CREATED_TIME_DOC)})
${lines.join("")}`;
}

function viewModel({ typeName, doc, from, to, columns: [fromId, toId], details }: TypedView): string {
  const id = (name: string, type: string) =>
    `    ${linkAttribute(name)}: ${type} = pydantic.Field(..., alias=${quoted(name)})\n`;
  const detail = ({ name, kind, isNullable, doc: text }: TypedDetail) => {
    const type = kind === "text" ? "str" : "int";
    return `    ${name}: ${isNullable ? `typing.Optional[${type}]` : type} = pydantic.Field(..., description=${quoted(text)})\n`;
  };
  return `class ${typeName}(_Row):
${docstring(doc, "    ")}
${id(fromId, `${from.typeName}Id`)}    position: int = pydantic.Field(..., description=${quoted(POSITION_DOC)})
${id(toId, to ? `${to.typeName}Id` : "str")}${details.map(detail).join("")}`;
}

function linkAttribute(name: string): string {
  const column = { fieldId: "x", name } as TypedTable["columns"][number];
  return attributesOf({ columns: [column] } as TypedTable, RESERVED).get("x")!;
}
