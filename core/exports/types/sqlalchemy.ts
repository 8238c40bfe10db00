/** SQLAlchemy: a declarative class per table, with relationships for links. Runs with versions 1.4 and 2. */
import type { RowColumn, TypedColumn, TypedTable, TypedView, TypeModel } from "./model";
import { annotation, attributesOf, pythonHead, pythonIds } from "./python-parts";
import { docstring, lineComments, quoted } from "./text";

/** Attributes that declarative classes have themselves. */
const RESERVED = ["metadata", "registry", "mapped_column", "postgresql"];

const IMPORTS = `import datetime
import decimal
import typing

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql

if typing.TYPE_CHECKING or hasattr(orm, "mapped_column"):
    mapped_column = orm.mapped_column
else:  # SQLAlchemy 1.4
    mapped_column = sa.Column

Base = orm.declarative_base()


class _UtcTime(sa.types.TypeDecorator):
    """A column without a zone that contains UTC; a parameter without a zone is UTC, too."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value, dialect):
        has_zone = value is not None and value.tzinfo is not None
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if has_zone else value

    def process_result_value(self, value, dialect):
        return None if value is None else value.replace(tzinfo=datetime.timezone.utc)


`;

const TYPES = {
  text: "sa.Text",
  numeric: "sa.Numeric",
  integer: "sa.Integer",
  bigint: "sa.BigInteger",
  bool: "sa.Boolean",
  date: "sa.Date",
  timestamp: "_UtcTime",
};

export function sqlalchemyModels(model: TypeModel): string {
  return [
    pythonHead(model, IMPORTS) + pythonIds(model),
    ...model.tables.map((table) => tableClass(model, table)),
    ...model.views.map((view) => viewTable(model, view)),
  ].join("\n\n");
}

function tableClass(model: TypeModel, table: TypedTable): string {
  const { typeName, name, doc, columns, row } = table;
  const attributes = attributesOf(table, RESERVED);
  const lines = row.map((column) => columnText(column, attributes.get(column.fieldId)!, table));
  const relations = columns
    .filter(({ linked }) => linked)
    .map((column) => relationText(table, column, attributes.get(column.fieldId)!));
  return `class ${typeName}(Base):
${docstring(doc, "    ")}
    __tablename__ = ${quoted(name)}
${schemaLine(model)}
${lines.join("")}${relations.join("")}`;
}

function schemaLine({ base }: TypeModel): string {
  const { schema } = base.database;
  return schema === "public" ? "" : `    __table_args__ = {"schema": ${quoted(schema)}}\n`;
}

function columnText(column: RowColumn, attribute: string, { writeView }: TypedTable): string {
  const { doc, isKey } = column;
  // A new record gets its id from Airtable.
  const value = isKey && writeView !== undefined ? ", server_default=sa.FetchedValue()" : "";
  return `${lineComments("#:", doc, "    ")}    ${attribute}: orm.Mapped[${annotation(column)}] = mapped_column(${argumentsOf(column)}${value})\n`;
}

/** The arguments that declare a column. */
function argumentsOf({ name, kind, isList, isNullable, isKey }: RowColumn): string {
  const type = isList ? `postgresql.ARRAY(${TYPES[kind]})` : TYPES[kind];
  const rest = isKey ? ", primary_key=True" : isNullable ? "" : ", nullable=False";
  return `${quoted(name)}, ${type}${rest}`;
}

/** Links are read by comparing the array with the other table's ids; no foreign key is needed. */
function relationText({ typeName }: TypedTable, { isList, linked }: TypedColumn, attribute: string): string {
  const to = linked!.typeName;
  const ids = `orm.foreign(${typeName}.${attribute})`;
  const join = `orm.remote(${to}.id) == ${isList ? `sa.any_(${ids})` : ids}`;
  const type = isList ? `typing.List["${to}"]` : `typing.Optional["${to}"]`;
  return `    ${attribute}__record${isList ? "s" : ""}: orm.Mapped[${type}] = orm.relationship(
        ${quoted(to)}, primaryjoin=lambda: ${join}, viewonly=True, uselist=${isList ? "True" : "False"}
    )
`;
}

function viewTable(model: TypeModel, { typeName, name, doc, row }: TypedView): string {
  const { schema } = model.base.database;
  const where = schema === "public" ? "" : `    schema=${quoted(schema)},\n`;
  return `${lineComments("#:", doc)}${typeName} = sa.Table(
    ${quoted(name)},
    Base.metadata,
${row.map((column) => `    sa.Column(${argumentsOf(column)}),\n`).join("")}${where})
`;
}
