/**
 * Kysely: the interface of the database. No column can be written, because the replica is read-only; with SQL writes, a second
 * one has the views that can be.
 */
import type { TypeModel } from "./model";
import {
  DAY,
  NUMERIC,
  rowProperties,
  type TsProperty,
  tsHead,
  tsIds,
  tsInterface,
  UNKNOWN_CHOICE,
  utcSettings,
  writableProperties,
  writeSchema,
} from "./ts-parts";

const PARTS = `/** A column that is read only: write to Airtable. */
export type Copied<Value> = ColumnType<Value, never, never>;
`;

export function kyselyTypes(model: TypeModel): string {
  const { base, relations } = model;
  const { schema } = base.database;
  const names = relations.map(({ name, typeName }) => ({ name, type: `${typeName}Table`, doc: "" }));
  const where = schema === "public" ? "" : ` Use it with \`db.withSchema(${JSON.stringify(schema)})\`.`;
  return [
    `${tsHead(model)}import type { ColumnType } from "kysely";\n`,
    UNKNOWN_CHOICE,
    NUMERIC,
    DAY,
    utcSettings(),
    PARTS,
    tsIds(model),
    ...relations.map((one) => tsInterface(`${one.typeName}Table`, one.doc, copied(rowProperties(one)))),
    ...writes(model),
    tsInterface("Database", `All tables, by their names in SQL.${where}`, names),
  ].join("\n");
}

/** The views that SQL writes to, as a database of their own. */
function writes(model: TypeModel): string[] {
  const written = model.tables.filter(({ writeView }) => writeView !== undefined);
  if (written.length === 0) return [];
  const schema = writeSchema(model);
  const views = written.map((table) => {
    const writable = new Map(writableProperties(table).map(({ name, type }) => [name, type]));
    const properties = rowProperties(table).map((one) => {
      const type = writable.get(one.name);
      if (type === undefined) return { ...one, type: `Copied<${one.type}>` };
      return { ...one, type: `Written<${one.type}${type === one.type ? "" : `, ${type}`}>` };
    });
    return tsInterface(`${table.typeName}Writes`, `${schema}.${table.writeView}\n\n${table.doc}`, properties);
  });
  const names = written.map(({ writeView, typeName }) => ({
    name: writeView!,
    type: `${typeName}Writes`,
    doc: "",
  }));
  const doc = `The views to write to: \`new Kysely<WriteDatabase>(…).withSchema(${JSON.stringify(schema)})\`.`;
  return [
    `/** A column that can be left out of a new row. */
export type Written<Value, Given = Value> = ColumnType<Value, Given | undefined, Given>;
`,
    ...views,
    tsInterface("WriteDatabase", doc, names),
  ];
}

function copied(properties: TsProperty[]): TsProperty[] {
  return properties.map((one) => ({ ...one, type: `Copied<${one.type}>` }));
}
