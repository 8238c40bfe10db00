/** Zod: schemas that check rows as drivers or JSON have them, and convert numbers and times. */
import type { RowColumn, TypedRelation, TypeModel } from "./model";
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

export function zodSchemas(model: TypeModel): string {
  const { tables, relations } = model;
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
    ...relations.map(objectSchema),
  ].join("\n");
}

function objectSchema({ typeName, doc, row }: TypedRelation): string {
  const lines = row.map((one) => `${jsDoc(one.doc, "  ")}  ${key(one.name)}: ${schemaOf(one)},\n`);
  return `${jsDoc(doc)}export const ${typeName}Row = z.object({\n${lines.join("")}});
export type ${typeName}Row = z.output<typeof ${typeName}Row>;
`;
}

function schemaOf(column: RowColumn): string {
  const element = column.hasEmptyElements ? `${elementOf(column)}.nullable()` : elementOf(column);
  const schema = column.isList ? `z.array(${element})` : element;
  return column.isNullable ? `${schema}.nullable()` : schema;
}

function elementOf({ kind, linked, choices, spec }: RowColumn): string {
  if (linked) return `${linked.typeName}Id`;
  if (choices) return `choice(${choices.map(quoted).join(", ")})`;
  if (spec?.type === "barcode") return "digits";
  return {
    text: "z.string()",
    numeric: "numeric",
    integer: "z.number()",
    bigint: "numeric",
    bool: "z.boolean()",
    date: "date",
    timestamp: "utcTime",
  }[kind];
}
