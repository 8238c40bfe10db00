/** Kysely: the interface of the database. No column can be written, because the replica is read-only. */
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
  viewProperties,
} from "./ts-parts";

const PARTS = `/** A column that is read only: write to Airtable. */
export type Copied<Value> = ColumnType<Value, never, never>;
`;

export function kyselyTypes(model: TypeModel): string {
  const { base, tables, views } = model;
  const { schema } = base.database;
  const names = [...tables, ...views].map(({ name, typeName }) => ({
    name,
    type: `${typeName}Table`,
    doc: "",
  }));
  const where = schema === "public" ? "" : ` Use it with \`db.withSchema(${JSON.stringify(schema)})\`.`;
  return [
    `${tsHead(model)}import type { ColumnType } from "kysely";\n`,
    UNKNOWN_CHOICE,
    NUMERIC,
    DAY,
    utcSettings(),
    PARTS,
    tsIds(model),
    ...tables.map((table) => tsInterface(`${table.typeName}Table`, table.doc, copied(rowProperties(table)))),
    ...views.map((view) => tsInterface(`${view.typeName}Table`, view.doc, copied(viewProperties(view)))),
    tsInterface("Database", `All tables, by their names in SQL.${where}`, names),
  ].join("\n");
}

function copied(properties: TsProperty[]): TsProperty[] {
  return properties.map((one) => ({ ...one, type: `Copied<${one.type}>` }));
}
