/** Zod: schemas that check rows as drivers or JSON have them, and convert numbers and times. */
import {
  CREATED_TIME_DOC,
  ID_DOC,
  POSITION_DOC,
  type TypedColumn,
  type TypedTable,
  type TypedView,
  type TypeModel,
} from "./model";
import { jsDoc, key, quoted } from "./text";
import { tsHead, utcSettings } from "./ts-parts";

const PARTS = `/** A number; drivers return the types numeric and bigint as text. */
export const numeric = z.union([z.number(), z.string().regex(/^[+-]?[0-9.]+$/).transform(Number)]);

/** A number of any length, as text. */
export const digits = z.union([z.string(), z.number().transform(String)]);

let readsUtc = false;

/** Whether the driver read a Date in UTC. Without the settings above, it took UTC for the time zone of this process. */
const isUtc = (time: Date) => readsUtc || [0, 86_400_000].every((ms) => new Date(time.getTime() - ms).getTimezoneOffset() === 0);
const NOT_UTC = "The driver read this in the time zone of the process: use utcOptions() or useUtc(pg)";

/** A time in UTC: a driver's Date, or the text of Postgres, which has no zone. */
export const utcTime = z.union([
  z.date().refine(isUtc, NOT_UTC),
  z.string().transform((text) => text.replace(" ", "T")).pipe(z.iso.datetime({ local: true })).transform((text) => new Date(text.endsWith("Z") ? text : \`\${text}Z\`)),
]);

/** A day, as text: a Date would be another day in some time zones. */
export const date = z.union([z.iso.date(), z.date().refine(isUtc, NOT_UTC).transform((day) => day.toISOString().slice(0, 10))]);

/** The choice of a select; one that was added later is accepted. */
export const choice = <const Choice extends string>(..._known: Choice[]) =>
  z.custom<Choice | (string & Record<never, never>)>((value) => typeof value === "string");
`;

interface Property {
  name: string;
  schema: string;
  doc: string;
}

export function zodSchemas(model: TypeModel): string {
  const { tables, views } = model;
  const ids = tables.map(
    ({ id, typeName, sourceName }) =>
      `${jsDoc(`The id of a record of ${sourceName} (${id})`)}export const ${typeName}Id = z.string().brand<${quoted(id)}>();
export type ${typeName}Id = z.output<typeof ${typeName}Id>;
`,
  );
  return [
    `${tsHead(model)}import { z } from "zod";\n`,
    utcSettings("readsUtc = true;"),
    PARTS,
    ...ids,
    ...tables.map((table) => objectSchema(table.typeName, table.doc, rowOf(table))),
    ...views.map((view) => objectSchema(view.typeName, view.doc, viewOf(view))),
  ].join("\n");
}

function objectSchema(typeName: string, doc: string, properties: Property[]): string {
  const lines = properties.map((one) => `${jsDoc(one.doc, "  ")}  ${key(one.name)}: ${one.schema},\n`);
  return `${jsDoc(doc)}export const ${typeName}Row = z.object({\n${lines.join("")}});
export type ${typeName}Row = z.output<typeof ${typeName}Row>;
`;
}

function rowOf({ typeName, columns }: TypedTable): Property[] {
  return [
    { name: "id", schema: `${typeName}Id`, doc: ID_DOC },
    { name: "created_time", schema: "utcTime", doc: CREATED_TIME_DOC },
    ...columns.map((column) => ({ name: column.name, schema: schemaOf(column), doc: column.doc })),
  ];
}

function viewOf({ from, to, columns: [fromId, toId], toDoc, details }: TypedView): Property[] {
  return [
    { name: fromId, schema: `${from.typeName}Id`, doc: `The record of ${from.name}` },
    { name: "position", schema: "z.number()", doc: POSITION_DOC },
    { name: toId, schema: to ? `${to.typeName}Id` : "z.string()", doc: toDoc },
    ...details.map(({ name, kind, isNullable, doc }) => {
      const schema = { text: "z.string()", integer: "z.number()", bigint: "numeric" }[kind];
      return { name, schema: isNullable ? `${schema}.nullable()` : schema, doc };
    }),
  ];
}

function schemaOf(column: TypedColumn): string {
  const element = column.hasEmptyElements ? `${elementOf(column)}.nullable()` : elementOf(column);
  const schema = column.isList ? `z.array(${element})` : element;
  return column.isNullable ? `${schema}.nullable()` : schema;
}

function elementOf({ kind, linked, choices, spec }: TypedColumn): string {
  if (linked) return `${linked.typeName}Id`;
  if (choices) return `choice(${choices.map(quoted).join(", ")})`;
  if (spec.type === "barcode") return "digits";
  return {
    text: "z.string()",
    numeric: "numeric",
    bool: "z.boolean()",
    date: "date",
    timestamp: "utcTime",
  }[kind];
}
