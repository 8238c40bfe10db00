/** Pydantic: a model per table, for the rows that psycopg returns as dictionaries. Runs with versions 1.10 and 2. */
import type { TypedRelation, TypeModel } from "./model";
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
  return [pythonHead(model, IMPORTS) + pythonIds(model), ...model.relations.map(classText)].join("\n\n");
}

function classText(one: TypedRelation): string {
  const { typeName, doc, row } = one;
  // Version 2 keeps names that begin with `model_` for itself.
  const own = row.map(({ name }) => name).filter((name) => name.startsWith("model_"));
  const attributes = attributesOf(one, [...RESERVED, ...own]);
  const lines = row.map((column) => {
    const name = attributes.get(column.fieldId)!;
    const alias = name === column.name ? "" : `alias=${quoted(column.name)}, `;
    const value = column.isNullable ? "None" : "...";
    return `    ${name}: ${annotation(column)} = pydantic.Field(${value}, ${alias}description=${quoted(column.doc)})\n`;
  });
  return `class ${typeName}(_Row):
${docstring(doc, "    ")}
${lines.join("")}`;
}
