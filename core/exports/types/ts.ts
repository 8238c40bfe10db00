/** TypeScript: interfaces of rows as drivers return them, and of records as Airtable's API and the proxy do. */
import type { TypedTable, TypeModel } from "./model";
import { CELL_TYPES, tsCellType } from "./ts-cell";
import {
  DAY,
  NUMERIC,
  rowProperties,
  tsHead,
  tsIds,
  tsInterface,
  UNKNOWN_CHOICE,
  utcSettings,
  writableProperties,
  writeSchema,
} from "./ts-parts";

export function typescript(model: TypeModel): string {
  const { tables, relations } = model;
  return [
    tsHead(model),
    UNKNOWN_CHOICE,
    NUMERIC,
    DAY,
    utcSettings(),
    CELL_TYPES,
    tsIds(model),
    ...relations.map((one) => tsInterface(`${one.typeName}Row`, one.doc, rowProperties(one))),
    ...writeTypes(model),
    ...tables.map(airtableTypes),
    tableMap(
      "Rows",
      "The rows of each table and view, by its name in SQL",
      relations.map(({ name, typeName }) => ({ name, type: `${typeName}Row` })),
    ),
    tableMap(
      "Records",
      "The records of each table, by its id in Airtable",
      tables.map(({ id, typeName }) => ({ name: id, type: `${typeName}Record` })),
    ),
  ].join("\n");
}

/** Of tables that SQL writes to. */
function writeTypes(model: TypeModel): string[] {
  const written = model.tables.filter(({ writeView }) => writeView !== undefined);
  if (written.length === 0) return [];
  const schema = writeSchema(model);
  const byView = (suffix: string) =>
    written.map(({ writeView, typeName }) => ({ name: writeView!, type: `${typeName}${suffix}` }));
  return [
    ...written.map(
      (
        table,
      ) => `${tsInterface(`${table.typeName}Insert`, `A new row of ${schema}.${table.writeView}`, writableProperties(table), "?")}
/** The columns of a row of ${schema}.${table.writeView} that change. */
export type ${table.typeName}Update = ${table.typeName}Insert;
`,
    ),
    tableMap("Inserts", `New rows of each view in the schema ${schema}, by its name`, byView("Insert")),
    tableMap(
      "Updates",
      `Changes of rows of each view in the schema ${schema}, by its name`,
      byView("Update"),
    ),
  ];
}

function airtableTypes({ id, typeName, sourceName, columns }: TypedTable): string {
  // A name that occurs twice would be two properties of one name.
  const named = new Map(columns.toReversed().map((column) => [column.sourceName, column]));
  const properties = columns
    .filter((column) => named.get(column.sourceName) === column)
    .map((column) => ({ name: column.sourceName, type: tsCellType(column), doc: column.doc }));
  const fields = `The cells of a record of ${sourceName} (${id}), by field name; empty cells are absent`;
  return `${tsInterface(`${typeName}Fields`, fields, properties, "?")}
export type ${typeName}Record = AirtableRecord<${typeName}Id, ${typeName}Fields>;
`;
}

function tableMap(name: string, doc: string, entries: { name: string; type: string }[]): string {
  const properties = entries.map((entry) => ({ ...entry, doc: "" }));
  return tsInterface(name, doc, properties);
}
