/** Prisma: a schema with a model per table and view. Prisma has no unions of texts, so choices are comments. */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  POSITION_DOC,
  type TypedColumn,
  type TypedTable,
  type TypedView,
  type TypeModel,
} from "./model";
import { asciiAttribute, asciiTypeName, assignIdentifiers } from "./names";
import { relationsOf } from "./relations";
import { lineComments, quoted } from "./text";

/** The words that no model can be named with (Prisma's `reserved_model_names.rs`), and Prisma's own types. */
const RESERVED = new Set(
  `PrismaClient async await break case catch class const continue debugger default delete do else enum export extends
  false finally for function if implements import in instanceof interface let new null package private protected public
  return super switch this throw true try using typeof var void while with yield
  String Boolean Int BigInt Float Decimal DateTime Json Bytes Unsupported`.split(/\s+/),
);

interface Field {
  /** In SQL; a relation has none. */
  column?: string;
  name: string;
  type: string;
  doc: string;
  attributes?: string;
}

export function prismaSchema(model: TypeModel): string {
  const { base, tables, views } = model;
  const { schema } = base.database;
  const entries = [
    ...tables.map(({ id, name }) => ({ id, name })),
    ...views.map(({ name }) => ({ id: name, name })),
  ];
  const names = assignIdentifiers(entries, { spell: asciiTypeName, fallback: "Table", reserved: RESERVED });
  const nameOf = (one: TypedTable | TypedView) => names.get("id" in one ? one.id : one.name)!;
  const sidesOf = relationsOf(model, nameOf);
  const where = schema === "public" ? "" : `\n  schemas  = [${quoted(schema)}]`;
  const end = schema === "public" ? [] : [`  @@schema(${quoted(schema)})`];
  const block = (id: string, one: TypedTable | TypedView, columns: Field[]) => {
    const sides = sidesOf(id);
    const plain = assignIdentifiers(
      [
        ...columns.map((field) => ({ id: `0 ${field.column}`, name: field.name })),
        ...sides.map((side) => ({ id: `1 ${side.name}`, name: side.name })),
      ],
      { spell: asciiAttribute, fallback: "field" },
    );
    const own = (column: string) => plain.get(`0 ${column}`)!;
    const fields = columns.map((field) => fieldText(own(field.column!), field));
    const relations = sides.map((side) => {
      // The name that Prisma would derive for the constraint is cut, and may occur twice.
      const map = `, map: ${quoted(side.relation)}`;
      const by = side.own && `, fields: [${own(side.own.column)}], references: [id]${map}`;
      const type = side.own ? `${side.table}${side.own.isNullable ? "?" : ""}` : `${side.table}[]`;
      return `  ${plain.get(`1 ${side.name}`)} ${type} @relation(${quoted(side.relation)}${by ?? ""})\n`;
    });
    const keys = "id" in one ? [] : [`  @@id([${own(one.columns[0])}, ${own("position")}])`];
    const rest = [...keys, `  @@map(${quoted(one.name)})`, ...end].join("\n");
    return `${lineComments("///", one.doc)}model ${nameOf(one)} {\n${[...fields, ...relations].join("")}\n${rest}\n}\n`;
  };
  return [
    `${lineComments("//", `${model.title}\n\nGenerated: do not edit. Generate it again after changes of the tables in Airtable.\nRead only: do not run migrations on these tables. The URL of the database is in prisma.config.ts.`)}
datasource db {
  provider = "postgresql"${where}
}

generator client {
  provider = "prisma-client-js"
}
`,
    ...tables.map((table) => block(table.id, table, tableFields(table))),
    ...views.map((view) => block(view.name, view, viewFields(view))),
  ].join("\n");
}

/** Bytes of a table's name from which on the name of its primary key, with `_pkey`, is cut, and may be another table's. */
const MOST_BYTES = 58;

function tableFields({ id, name, columns, writeView }: TypedTable): Field[] {
  const key = Buffer.byteLength(name) > MOST_BYTES ? ` @id(map: ${quoted(`${id}_pkey`)})` : " @id";
  // A new record gets its id from Airtable.
  const value = writeView === undefined ? "" : " @default(dbgenerated())";
  return [
    { column: "id", name: "id", type: "String", doc: ID_DOC, attributes: `${key}${value}` },
    {
      column: "created_time",
      name: "created_time",
      type: "DateTime",
      doc: CREATED_TIME_DOC,
      attributes: " @db.Timestamp(6)",
    },
    ...columns.map((column) => ({
      column: column.name,
      name: column.name,
      ...typeOf(column),
      doc: docOf(column),
    })),
  ];
}

function viewFields({ from: { name: table }, columns: [from, to], toDoc, details }: TypedView): Field[] {
  return [
    { column: from, name: from, type: "String", doc: `The record of ${table}` },
    { column: "position", name: "position", type: "Int", doc: POSITION_DOC },
    { column: to, name: to, type: "String", doc: toDoc },
    ...details.map(({ name, kind, isNullable, doc }) => {
      const type = { text: "String", integer: "Int", bigint: "BigInt" }[kind];
      return { column: name, name, type: isNullable ? `${type}?` : type, doc };
    }),
  ];
}

function fieldText(name: string, { column, type, doc, attributes = "" }: Field): string {
  const map = name === column ? "" : ` @map(${quoted(column!)})`;
  return `${lineComments("///", doc, "  ")}  ${name} ${type}${attributes}${map}\n`;
}

/** Prisma reads an array that is NULL as an empty one. It reads no row with a list that has an empty element. */
function typeOf({ kind, isList, hasEmptyElements, isNullable }: TypedColumn): {
  type: string;
  attributes?: string;
} {
  if (hasEmptyElements) return { type: 'Unsupported("text[]")?' };
  const type = {
    text: "String",
    numeric: "Decimal",
    bool: "Boolean",
    date: "DateTime",
    timestamp: "DateTime",
  }[kind];
  const attributes = { text: "", numeric: "", bool: "", date: " @db.Date", timestamp: " @db.Timestamp(6)" }[
    kind
  ];
  return { type: `${type}${isList ? "[]" : isNullable ? "?" : ""}`, attributes };
}

function docOf({ doc, choices }: TypedColumn): string {
  return choices ? `${doc}\n\nChoices: ${choices.map(quoted).join(", ")}` : doc;
}
