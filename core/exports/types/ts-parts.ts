/** Parts that the outputs in TypeScript share: heads of files, record ids and the values of rows. */
import { writeSchemasOf } from "../../replica";
import type { RowColumn, TypedRelation, TypedTable, TypeModel } from "./model";
import { jsDoc, key, quoted } from "./text";

export function tsHead({ title }: TypeModel, ...remarks: string[]): string {
  const note = "Generated: do not edit. Generate it again after changes of the tables in Airtable.";
  return jsDoc([title, "", note, ...remarks].join("\n"));
}

/** `ProjectsId`: a text that no id of another table is assigned to. */
export function tsIds({ tables }: TypeModel): string {
  const ids = tables.map(
    ({ id, typeName, sourceName }) =>
      `${jsDoc(`The id of a record of ${sourceName} (${id})`)}export type ${typeName}Id = string & { readonly __table: ${quoted(id)} };\n`,
  );
  return ids.join("\n");
}

export const UNKNOWN_CHOICE = `/** A choice that was added to a select after this file was generated; editors still offer the known ones. */
export type UnknownChoice = string & Record<never, never>;
`;

export const NUMERIC = `/** A column of type numeric or bigint: drivers return it as text, with all of its digits. */
export type Numeric = string;
`;

export const DAY = `/** The day of a column of type date, \`YYYY-MM-DD\`: a Date would be another day in some time zones. */
export type Day = string;
`;

/**
 * Settings of both drivers. Columns of times have no zone, and contain UTC; the drivers read them in the zone of the
 * process. `onUse` runs when they are taken.
 */
export function utcSettings(onUse = ""): string {
  const first = onUse && `  ${onUse}\n`;
  return `const asTime = (text: string) => new Date(\`\${text.replace(" ", "T")}Z\`);
const asText = (text: string) => text;

/** Makes postgres.js read and compare times in UTC, and read days as text: \`postgres(url, utcOptions())\`. */
export function utcOptions() {
${first}  const toText = (time: Date | string) => (time instanceof Date ? time.toISOString() : time);
  return {
    connection: { TimeZone: "UTC" },
    types: {
      time: { to: 1114, from: [1114], serialize: toText, parse: asTime },
      day: { to: 1082, from: [1082], serialize: asText, parse: asText },
    },
  };
}

/** Makes node-postgres read and compare times in UTC, and read days as text: call \`useUtc(pg)\` once, before queries. */
export function useUtc(pg: {
  types: { setTypeParser(type: number, parse: (text: string) => unknown): void };
  defaults: { parseInputDatesAsUTC?: boolean | undefined };
}): void {
${first}  pg.types.setTypeParser(1114, asTime);
  pg.types.setTypeParser(1082, asText);
  pg.defaults.parseInputDatesAsUTC = true;
}
`;
}

/** The values of selects: `"Todo" | "Done" | UnknownChoice`. */
export function tsChoice(choices: string[]): string {
  return [...choices.map(quoted), "UnknownChoice"].join(" | ");
}

/** The type of a column as the drivers node-postgres and postgres.js return it with `utcSettings`. */
function tsRowType(column: RowColumn): string {
  const one = elementType(column);
  const isUnion = column.hasEmptyElements || column.choices !== undefined;
  const element = column.hasEmptyElements ? `${one} | null` : one;
  const type = column.isList ? (isUnion ? `(${element})[]` : `${element}[]`) : element;
  return column.isNullable ? `${type} | null` : type;
}

function elementType({ kind, linked, choices }: RowColumn): string {
  if (linked) return `${linked.typeName}Id`;
  if (choices) return tsChoice(choices);
  const numbers = { numeric: "Numeric", integer: "number", bigint: "Numeric" };
  return { text: "string", ...numbers, bool: "boolean", date: "Day", timestamp: "Date" }[kind];
}

export interface TsProperty {
  name: string;
  type: string;
  doc: string;
}

export function rowProperties({ row }: TypedRelation): TsProperty[] {
  return row.map((column) => ({ name: column.name, type: tsRowType(column), doc: column.doc }));
}

/** The columns that SQL writes can give a value, with the types that drivers accept. */
export function writableProperties({ columns }: TypedTable): TsProperty[] {
  return columns
    .filter(({ isWritable }) => isWritable)
    .map((column) => ({
      name: column.name,
      type: column.kind === "numeric" ? `number | ${tsRowType(column)}` : tsRowType(column),
      doc: column.doc,
    }));
}

/** Where the views of SQL writes are: `write`. */
export function writeSchema({ base }: TypeModel): string {
  return writeSchemasOf(base.database.schema).write.slice(1, -1);
}

export function tsInterface(name: string, doc: string, properties: TsProperty[], mark = ""): string {
  const lines = properties.map((one) => `${jsDoc(one.doc, "  ")}  ${key(one.name)}${mark}: ${one.type};\n`);
  return `${jsDoc(doc)}export interface ${name} {\n${lines.join("")}}\n`;
}
