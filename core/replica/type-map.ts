/**
 * The type mapping: one row per field type, which says what column it becomes and how its cells are read.
 *
 * This is the only place that decides it; the README's table is rendered from here.
 */
import type { FieldType, SourceField } from "../source";
import {
  type CellReader,
  readAiText,
  readAttachments,
  readBarcode,
  readButton,
  readCheckbox,
  readComputed,
  readDate,
  readDuration,
  readFirstItem,
  readFirstLink,
  readItems,
  readLinks,
  readNumber,
  readPerson,
  readText,
  readTimestamp,
} from "./map-record-cells";
import type { ColumnType, TypeSettings } from "./spec";

export interface TypeRow {
  /** The type's name for people. */
  label: string;
  column: ColumnType;
  read: CellReader;
  /** What of the cell is stored, for people. */
  note: string;
  /** The other column that the type can become, and when it does. */
  instead?: {
    column: ColumnType;
    read: CellReader;
    when: (field: Pick<SourceField, "result">, settings: TypeSettings) => boolean;
    /** `when`, for people. */
    shown: string;
  };
  /** What an absent cell means; null unless given. */
  absent?: false;
}

/** Results of a rollup that are numbers as JSON gives them; a duration is its seconds. */
const NUMERIC_RESULTS: ReadonlySet<FieldType> = new Set([
  "autonumber",
  "count",
  "currency",
  "duration",
  "number",
  "percent",
  "rating",
]);

const numeric = { column: "numeric", read: readNumber } as const;
const text = { column: "text", read: readText, note: "as it is" } as const;
const timestamp = { column: "timestamp", read: readTimestamp, note: "UTC" } as const;
const people = { column: "text[]", read: readItems, note: "e-mail, else name, else id" } as const;
const person = { column: "text", read: readPerson, note: "e-mail, else name, else id" } as const;

export const typeMap: Record<FieldType, TypeRow> = {
  ai_text: { label: "AI text", column: "text", read: readAiText, note: "the generated text" },
  attachment: {
    label: "Attachment",
    column: "text[]",
    read: readAttachments,
    note: "the URLs, which the source signs and lets expire; they are refreshed in time, or are ours, which last",
  },
  autonumber: { label: "Autonumber", ...numeric, note: "" },
  barcode: {
    label: "Barcode",
    column: "numeric",
    read: readBarcode,
    note: "its text where that is a decimal number, else NULL and an issue",
  },
  button: { label: "Button", column: "text", read: readButton, note: "its URL, else its label" },
  checkbox: {
    label: "Checkbox",
    column: "bool",
    read: readCheckbox,
    note: "never NULL for an unticked box",
    absent: false,
  },
  collaborator: { label: "Collaborator", ...people },
  collaborators: { label: "Multiple collaborators", ...people },
  count: { label: "Count", ...numeric, note: "" },
  created_by: { label: "Created by", ...person },
  created_time: { label: "Created time", ...timestamp },
  currency: { label: "Currency", ...numeric, note: "the amount, without the symbol" },
  date: { label: "Date", column: "date", read: readDate, note: "" },
  date_time: { label: "Date with time", ...timestamp },
  duration: {
    label: "Duration",
    column: "text",
    read: readDuration,
    note: "`H:MM:SS`, with `.fff` where there are milliseconds; casts to `interval`",
  },
  email: { label: "Email", ...text },
  external_sync_source: { label: "External sync source", ...text, note: "the source's name" },
  formula: {
    label: "Formula",
    column: "text",
    read: readComputed,
    note: "the value as text; a failed computation (`#ERROR!`, `NaN`) is NULL and an issue",
  },
  last_modified_by: { label: "Last modified by", ...person },
  last_modified_time: { label: "Last modified time", ...timestamp },
  links: {
    label: "Link to another record",
    column: "text[]",
    read: readLinks,
    note: "record ids, which join with the other table's `id`; the first one as `text`",
    instead: {
      column: "text",
      read: readFirstLink,
      when: (_, settings) => settings.linkedRecordsAsText,
      shown: "with the setting linked records as text",
    },
  },
  long_text: { label: "Long text", ...text },
  lookup: {
    label: "Lookup",
    column: "text[]",
    read: readItems,
    note: "every element as text; the first that is not empty as `text`",
    instead: {
      column: "text",
      read: readFirstItem,
      when: (_, settings) => settings.lookupsAsText,
      shown: "with the setting lookups as text",
    },
  },
  multiple_select: { label: "Multiple select", column: "text[]", read: readItems, note: "the names" },
  number: { label: "Number", ...numeric, note: "" },
  percent: { label: "Percent", ...numeric, note: "the fraction: 12.3 % is 0.123" },
  phone: { label: "Phone number", ...text },
  rating: { label: "Rating", ...numeric, note: "" },
  rich_text: { label: "Rich text", ...text, note: "its Markdown" },
  rollup: {
    label: "Rollup",
    ...numeric,
    note: "durations in seconds; what is no number is NULL and an issue, or text in a `text` column",
    instead: {
      column: "text",
      read: readComputed,
      when: ({ result }) => result !== undefined && !NUMERIC_RESULTS.has(result),
      shown: "where the source declares another result than a number",
    },
  },
  single_select: { label: "Single select", ...text, note: "the name" },
  text: { label: "Single line text", ...text },
  url: { label: "URL", ...text },
  unknown: { label: "Any other type", ...text, note: "as it is; JSON text where it is no string" },
};

/** The type of the column that `field` becomes in a base with these settings. */
export function columnTypeOf(
  field: Pick<SourceField, "type" | "result">,
  settings: TypeSettings,
): ColumnType {
  const { column, instead } = typeMap[field.type];
  return instead?.when(field, settings) ? instead.column : column;
}

/** How cells of a field of this type are read into a column of `columnType`. */
export function readerOf(type: FieldType, columnType: ColumnType): CellReader {
  const { read, instead } = typeMap[type];
  return instead?.column === columnType ? instead.read : read;
}

/** The README's table: a row per type, by label. */
export function typeMapMarkdown(): string {
  const rows = Object.values(typeMap)
    .sort(
      (a, b) => Number(a === typeMap.unknown) - Number(b === typeMap.unknown) || (a.label < b.label ? -1 : 1),
    )
    .map(({ label, column, note, instead }) => {
      const other = instead ? `; \`${instead.column}\` ${instead.shown}` : "";
      return `| ${label} | \`${column}\`${other} | ${note} |\n`;
    });
  return `| Source field type | Column type | What is stored |\n| --- | --- | --- |\n${rows.join("")}`;
}
