/** Prisma: a schema with a model per table and view. Prisma has no unions of texts, so choices are comments. */
import { POSITION, type RowColumn, type TypedTable, type TypedView, type TypeModel } from "./model";
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

export function prismaSchema(model: TypeModel): string {
  const { base, relations: all } = model;
  const { schema } = base.database;
  const names = assignIdentifiers(
    all.map(({ key, name }) => ({ id: key, name })),
    { spell: asciiTypeName, fallback: "Table", reserved: RESERVED },
  );
  const nameOf = (one: TypedTable | TypedView) => names.get(one.key)!;
  const sidesOf = relationsOf(model, nameOf);
  const where = schema === "public" ? "" : `\n  schemas  = [${quoted(schema)}]`;
  const end = schema === "public" ? [] : [`  @@schema(${quoted(schema)})`];
  const block = (one: TypedTable | TypedView) => {
    const sides = sidesOf(one.key);
    const plain = assignIdentifiers(
      [
        ...one.row.map(({ name }) => ({ id: `0 ${name}`, name })),
        ...sides.map((side) => ({ id: `1 ${side.name}`, name: side.name })),
      ],
      { spell: asciiAttribute, fallback: "field" },
    );
    const own = (column: string) => plain.get(`0 ${column}`)!;
    const fields = one.row.map((column) => fieldText(own(column.name), column, one));
    const relations = sides.map((side) => {
      // The name that Prisma would derive for the constraint is cut, and may occur twice.
      const map = `, map: ${quoted(side.relation)}`;
      const by = side.own && `, fields: [${own(side.own.column)}], references: [id]${map}`;
      const type = side.own ? `${side.table}${side.own.isNullable ? "?" : ""}` : `${side.table}[]`;
      return `  ${plain.get(`1 ${side.name}`)} ${type} @relation(${quoted(side.relation)}${by ?? ""})\n`;
    });
    const keys = "id" in one ? [] : [`  @@id([${own(one.columns[0])}, ${own(POSITION.name)}])`];
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
    ...all.map(block),
  ].join("\n");
}

/** Bytes of a table's name from which on the name of its primary key, with `_pkey`, is cut, and may be another table's. */
const MOST_BYTES = 58;

function keyOf({ key, name }: TypedTable | TypedView): string {
  return Buffer.byteLength(name) > MOST_BYTES ? ` @id(map: ${quoted(`${key}_pkey`)})` : " @id";
}

function fieldText(name: string, column: RowColumn, one: TypedTable | TypedView): string {
  const key = column.isKey ? keyOf(one) : "";
  // A new record gets its id from Airtable.
  const value = column.isKey && "writeView" in one && one.writeView ? " @default(dbgenerated())" : "";
  const map = name === column.name ? "" : ` @map(${quoted(column.name)})`;
  return `${lineComments("///", docOf(column), "  ")}  ${name} ${typeOf(column)}${key}${value}${map}\n`;
}

/** With its attributes. Prisma reads an array that is NULL as an empty one, and no row with a list that has an empty element. */
function typeOf({ kind, isList, hasEmptyElements, isNullable }: RowColumn): string {
  if (hasEmptyElements) return 'Unsupported("text[]")?';
  const many = isList ? "[]" : isNullable ? "?" : "";
  return {
    text: `String${many}`,
    numeric: `Decimal${many}`,
    integer: `Int${many}`,
    bigint: `BigInt${many}`,
    bool: `Boolean${many}`,
    date: `DateTime${many} @db.Date`,
    timestamp: `DateTime${many} @db.Timestamp(6)`,
  }[kind];
}

function docOf({ doc, choices }: RowColumn): string {
  return choices ? `${doc}\n\nChoices: ${choices.map(quoted).join(", ")}` : doc;
}
