/** Drizzle: tables, the relations of single links and of views, and the views that SQL writes to. */
import type { RowColumn, TypedRelation, TypedTable, TypedView, TypeModel } from "./model";
import { assignIdentifiers, shortened, variableName } from "./names";
import { relationsOf, type Side } from "./relations";
import { jsDoc, key, quoted } from "./text";
import { tsChoice, tsHead, tsIds, UNKNOWN_CHOICE, writeSchema } from "./ts-parts";

/** Reserved words of JavaScript in modules, and what the file imports. */
const RESERVED = new Set(
  `arguments await break case catch class const continue debugger default delete do else enum eval export extends false
  finally for function if implements import in instanceof interface let new null package private protected public return
  static super switch this throw true try typeof var void while with yield undefined async of pg relations
  schema sql writes`.split(/\s+/),
);

export function drizzleTables(model: TypeModel): string {
  const { base, tables, relations: all } = model;
  const { schema } = base.database;
  const isPublic = schema === "public";
  const entries = [
    ...all.map(({ key: id, name }) => ({ id, name })),
    ...tables.flatMap(({ id, writeView }) =>
      writeView === undefined ? [] : [{ id: `write ${id}`, name: `write_${writeView}` }],
    ),
  ];
  const variables = assignIdentifiers(entries, {
    spell: variableName,
    fallback: "table",
    reserved: RESERVED,
  });
  const variableOf = (one: TypedTable | TypedView) => variables.get(one.key)!;
  const sidesOf = relationsOf(model, variableOf);
  const related = all.flatMap((one) => relationsText(variableOf(one), one, sidesOf(one.key)));
  const written = tables.filter(({ writeView }) => writeView !== undefined);
  const imports = [related.length > 0 && "relations", written.length > 0 && "sql"].filter(Boolean);
  const create = isPublic ? "pg.pgTable" : "schema.table";
  return [
    `${tsHead(model, "", "Read only: Basetide creates and changes these tables, so leave them out of drizzle-kit.")}${imports.length > 0 ? `import { ${imports.join(", ")} } from "drizzle-orm";\n` : ""}import * as pg from "drizzle-orm/pg-core";
`,
    ...(isPublic ? [] : [`export const schema = pg.pgSchema(${quoted(schema)});\n`]),
    UNKNOWN_CHOICE,
    tsIds(model),
    ...all.map(
      (one) => `${jsDoc(one.doc)}export const ${variableOf(one)} = ${create}(${quoted(one.name)}, {
${one.row.map((column) => columnText(column)).join("")}});
export type ${one.typeName}Row = typeof ${variableOf(one)}.$inferSelect;
`,
    ),
    ...related,
    ...(written.length > 0
      ? [
          `/** What is written here is written to Airtable. */\nexport const writes = pg.pgSchema(${quoted(writeSchema(model))});\n`,
        ]
      : []),
    ...written.map((table) => writeText(table, variables.get(`write ${table.id}`)!)),
  ].join("\n");
}

/** Columns that cannot be written are declared as generated: Drizzle leaves them out of inserts and updates. */
function writeText(table: TypedTable, variable: string): string {
  const { typeName, writeView, doc, columns, row } = table;
  const writable = new Set<RowColumn>(columns.filter(({ isWritable }) => isWritable));
  const lines = row.map((column) => {
    const value = column.isNullable ? "" : ".default(false)";
    return columnText(column, writable.has(column) ? value : ".generatedAlwaysAs(sql`null`)");
  });
  return `${jsDoc(doc)}export const ${variable} = writes.table(${quoted(writeView!)}, {
${lines.join("")}});
export type ${typeName}Insert = typeof ${variable}.$inferInsert;
export type ${typeName}Update = Partial<${typeName}Insert>;
`;
}

function columnText(column: RowColumn, end = ""): string {
  return `${jsDoc(column.doc, "  ")}  ${key(column.name)}: ${builder(column)}${end},\n`;
}

function builder({
  name,
  kind,
  isList,
  hasEmptyElements,
  isNullable,
  isKey,
  linked,
  choices,
  spec,
}: RowColumn): string {
  const text = quoted(name);
  const base = {
    text: `pg.text(${text})`,
    // Airtable's numbers are doubles; only a barcode may have more digits.
    numeric: spec?.type === "barcode" ? `pg.numeric(${text})` : `pg.numeric(${text}, { mode: "number" })`,
    integer: `pg.integer(${text})`,
    bigint: `pg.bigint(${text}, { mode: "number" })`,
    bool: `pg.boolean(${text})`,
    date: `pg.date(${text})`,
    timestamp: `pg.timestamp(${text})`,
  }[kind];
  const one = linked
    ? `${linked.typeName}Id`
    : choices
      ? tsChoice(choices)
      : hasEmptyElements
        ? "string | null"
        : undefined;
  const typed = one && (isList ? `.array().$type<(${one})[]>()` : `.$type<${one}>()`);
  return `${base}${typed ?? (isList ? ".array()" : "")}${isKey ? ".primaryKey()" : isNullable ? "" : ".notNull()"}`;
}

/** Drizzle's alias of a related table is `<variable>_<relation>`, of which Postgres keeps 63 bytes; a suffix has 3. */
const MAX_ALIAS_BYTES = 60;
/** What remains of a relation's name next to a long name of a variable. */
const MIN_NAME_BYTES = 16;

function relationsText(variable: string, { row }: TypedRelation, sides: Side[]): string[] {
  if (sides.length === 0) return [];
  const most = Math.max(MAX_ALIAS_BYTES - Buffer.byteLength(`${variable}_`), MIN_NAME_BYTES);
  const columns = row.map(({ name }) => name);
  const names = assignIdentifiers(
    sides.map(({ name }) => ({ id: name, name })),
    { spell: (name) => shortened(name, most), fallback: "relation", reserved: new Set(columns) },
  );
  const lines = sides.map(({ name, relation, own, table }) => {
    const fields = own && ` fields: [${variable}[${quoted(own.column)}]], references: [${table}.id],`;
    return `  ${key(names.get(name)!)}: ${own ? "one" : "many"}(${table}, {${fields ?? ""} relationName: ${quoted(relation)} }),\n`;
  });
  const used = [sides.some(({ own }) => own) && "one", sides.some(({ own }) => !own) && "many"];
  return [
    `export const ${variable}_relations = relations(${variable}, ({ ${used.filter(Boolean).join(", ")} }) => ({\n${lines.join("")}}));\n`,
  ];
}
