/** SQLAlchemy: a declarative class per table, with relationships for links. Runs with versions 1.4 and 2. */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  type TypedColumn,
  type TypedDetail,
  type TypedTable,
  type TypedView,
  type TypeModel,
} from "./model";
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
  const { typeName, name, doc, columns } = table;
  const attributes = attributesOf(table, RESERVED);
  const lines = columns.map((column) => columnText(column, attributes.get(column.fieldId)!));
  const relations = columns
    .filter(({ linked }) => linked)
    .map((column) => relationText(table, column, attributes.get(column.fieldId)!));
  return `class ${typeName}(Base):
${docstring(doc, "    ")}
    __tablename__ = ${quoted(name)}
${schemaLine(model)}
${lineComments("#:", ID_DOC, "    ")}    id: orm.Mapped[${typeName}Id] = mapped_column("id", sa.Text, primary_key=True${table.writeView === undefined ? "" : ", server_default=sa.FetchedValue()"})
${lineComments("#:", CREATED_TIME_DOC, "    ")}    created_time: orm.Mapped[datetime.datetime] = mapped_column("created_time", _UtcTime, nullable=False)
${lines.join("")}${relations.join("")}`;
}

function schemaLine({ base }: TypeModel): string {
  const { schema } = base.database;
  return schema === "public" ? "" : `    __table_args__ = {"schema": ${quoted(schema)}}\n`;
}

function columnText(column: TypedColumn, attribute: string): string {
  const { name, doc, kind, isList, isNullable } = column;
  const type = isList ? `postgresql.ARRAY(${TYPES[kind]})` : TYPES[kind];
  const nullable = isNullable ? "" : ", nullable=False";
  return `${lineComments("#:", doc, "    ")}    ${attribute}: orm.Mapped[${annotation(column)}] = mapped_column(${quoted(name)}, ${type}${nullable})\n`;
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

function viewTable(
  model: TypeModel,
  { typeName, name, doc, columns: [from, to], details }: TypedView,
): string {
  const { schema } = model.base.database;
  const where = schema === "public" ? "" : `    schema=${quoted(schema)},\n`;
  return `${lineComments("#:", doc)}${typeName} = sa.Table(
    ${quoted(name)},
    Base.metadata,
    sa.Column(${quoted(from)}, sa.Text, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column(${quoted(to)}, sa.Text, nullable=False),
${details.map(detailText).join("")}${where})
`;
}

function detailText({ name, kind, isNullable }: TypedDetail): string {
  const type = { text: "Text", integer: "Integer", bigint: "BigInteger" }[kind];
  return `    sa.Column("${name}", sa.${type}${isNullable ? "" : ", nullable=False"}),\n`;
}
