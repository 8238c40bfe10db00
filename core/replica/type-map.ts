/**
 * The type mapping: one row per field type, with the column that the type becomes and the reader of its cells.
 *
 * It is decided only here; the table of `docs/types.md` is rendered from it.
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
  readFiles,
  readFirstItem,
  readFirstLink,
  readHash,
  readItems,
  readLinks,
  readNumber,
  readPerson,
  readText,
  readTimestamp,
} from "./map-record-cells";
import type { ColumnType, TypeSettings } from "./spec";

/** How a column's cells are reconstructed from its stored values, if it stores them completely. */
export type ReadBack =
  | "text"
  | "number"
  | "checkbox"
  | "date"
  | "time"
  | "list"
  /** As its declared result; a number or text, by the column; a date or a moment; a list of results. */
  | "result"
  | "number_result"
  | "time_result"
  | "results";

/** Other traits of a type; each is left out if it has the usual value. */
export interface TypeTraits {
  /** The cell is computed from other cells, as the field's options say. */
  computed?: true;
  /**
   * `sometimes`: whether a cell fits its column does not depend on the schema, as it is computed or typed in freely.
   */
  fits?: "sometimes";
  /** False: the feed reports no change of the record when such a cell changes. */
  reported?: false;
  readsBack?: ReadBack;
  /** A rollup or formula with this result is a JSON number; a duration is in seconds. */
  numeric?: true;
}

interface TypeRow extends TypeTraits {
  /** The type's name for people. */
  label: string;
  column: ColumnType;
  read: CellReader;
  /** What is stored of the cell, for people. */
  note: string;
  /** The alternative column of the type, and when it applies. */
  instead?: {
    column: ColumnType;
    read: CellReader;
    when: (field: Pick<SourceField, "result">, settings: TypeSettings) => boolean;
    /** `when`, for people. */
    shown: string;
  };
  /** The value of an absent cell; default null. */
  absent?: false;
}

const numeric = { column: "numeric", read: readNumber } as const;
const text = { column: "text", read: readText, note: "unchanged" } as const;
const timestamp = { column: "timestamp", read: readTimestamp, note: "UTC" } as const;
const people = { column: "text[]", read: readItems, note: "e-mail, else name, else id" } as const;
const person = { column: "text", read: readPerson, note: "e-mail, else name, else id" } as const;

export const typeMap: Record<FieldType, TypeRow> = {
  ai_text: {
    label: "AI text",
    column: "text",
    read: readAiText,
    note: "the generated text",
    fits: "sometimes",
    reported: false,
  },
  attachment: {
    label: "Attachment",
    column: "text[]",
    read: readAttachments,
    note: "the URLs: Airtable's, which expire and are refreshed in time, or Basetide's, which last",
    reported: false,
  },
  autonumber: {
    label: "Autonumber",
    ...numeric,
    note: "",
    reported: false,
    readsBack: "number",
    numeric: true,
  },
  barcode: {
    label: "Barcode",
    column: "numeric",
    read: readBarcode,
    note: "its text if that is a decimal number, else NULL and an issue",
    fits: "sometimes",
  },
  button: {
    label: "Button",
    column: "text",
    read: readButton,
    note: "its URL, else its label",
    fits: "sometimes",
    reported: false,
  },
  checkbox: {
    label: "Checkbox",
    column: "bool",
    read: readCheckbox,
    note: "never NULL for an unticked box",
    absent: false,
    readsBack: "checkbox",
  },
  collaborator: { label: "Collaborator", ...people },
  collaborators: { label: "Multiple collaborators", ...people },
  count: {
    label: "Count",
    ...numeric,
    note: "",
    computed: true,
    reported: false,
    readsBack: "number",
    numeric: true,
  },
  created_by: { label: "Created by", ...person, reported: false },
  created_time: { label: "Created time", ...timestamp, reported: false, readsBack: "time_result" },
  currency: {
    label: "Currency",
    ...numeric,
    note: "the amount, without the symbol",
    readsBack: "number",
    numeric: true,
  },
  date: { label: "Date", column: "date", read: readDate, note: "", readsBack: "date" },
  date_time: { label: "Date with time", ...timestamp, readsBack: "time" },
  duration: {
    label: "Duration",
    column: "text",
    read: readDuration,
    note: "`H:MM:SS`, with `.fff` if there are milliseconds; casts to `interval`",
    numeric: true,
  },
  email: { label: "Email", ...text, readsBack: "text" },
  external_sync_source: {
    label: "External sync source",
    ...text,
    note: "the name of the source",
    reported: false,
  },
  formula: {
    label: "Formula",
    column: "text",
    read: readComputed,
    note: "the value as text; a failed computation (`#ERROR!`, `NaN`) is NULL and an issue",
    computed: true,
    fits: "sometimes",
    reported: false,
    readsBack: "result",
  },
  hashed: {
    label: "Hashed field",
    column: "text",
    read: readHash,
    note: "a keyed hash of the cell, for fields that [the selection](selection.md) hashes",
    reported: false,
  },
  last_modified_by: { label: "Last modified by", ...person, reported: false },
  last_modified_time: {
    label: "Last modified time",
    ...timestamp,
    reported: false,
    readsBack: "time_result",
  },
  links: {
    label: "Link to another record",
    column: "text[]",
    read: readLinks,
    note: "record ids, which join with the other table's `id`; as `text`, the first one",
    instead: {
      column: "text",
      read: readFirstLink,
      when: (_, settings) => settings.linkedRecordsAsText,
      shown: "with the setting *linked records as text*",
    },
    readsBack: "list",
  },
  long_text: { label: "Long text", ...text, readsBack: "text" },
  lookup: {
    label: "Lookup",
    column: "text[]",
    read: readItems,
    note: "every element as text; as `text`, the first that is not empty",
    instead: {
      column: "text",
      read: readFirstItem,
      when: (_, settings) => settings.lookupsAsText,
      shown: "with the setting *lookups as text*",
    },
    computed: true,
    fits: "sometimes",
    reported: false,
    readsBack: "results",
  },
  multiple_select: {
    label: "Multiple select",
    column: "text[]",
    read: readItems,
    note: "the names",
    readsBack: "list",
  },
  number: { label: "Number", ...numeric, note: "", readsBack: "number", numeric: true },
  percent: {
    label: "Percent",
    ...numeric,
    note: "the fraction: 12.3 % is 0.123",
    readsBack: "number",
    numeric: true,
  },
  phone: { label: "Phone number", ...text, readsBack: "text" },
  rating: { label: "Rating", ...numeric, note: "", readsBack: "number", numeric: true },
  rich_text: { label: "Rich text", ...text, note: "its Markdown", readsBack: "text" },
  rollup: {
    label: "Rollup",
    ...numeric,
    note: "durations in seconds; a value that is not a number is NULL and an issue, or text in a `text` column",
    instead: {
      column: "text",
      read: readComputed,
      when: ({ result }) => result !== undefined && !isNumeric(result),
      shown: "if Airtable declares a result that is not a number",
    },
    computed: true,
    fits: "sometimes",
    reported: false,
    readsBack: "number_result",
  },
  single_select: { label: "Single select", ...text, note: "the name", readsBack: "text" },
  text: { label: "Single line text", ...text, readsBack: "text" },
  url: { label: "URL", ...text, readsBack: "text" },
  unknown: {
    label: "Any other type",
    ...text,
    note: "unchanged if it is a string, else JSON text",
    reported: false,
  },
};

export function traitsOf(type: FieldType): TypeTraits {
  return typeMap[type];
}

function isNumeric(type: FieldType): boolean {
  return traitsOf(type).numeric === true;
}

/** Returns the type of the column that `field` becomes in a base with these settings. */
export function columnTypeOf(
  field: Pick<SourceField, "type" | "result">,
  settings: TypeSettings,
): ColumnType {
  const { column, instead } = typeMap[field.type];
  return instead?.when(field, settings) ? instead.column : column;
}

/** Returns the reader for cells of this field type into a column of `columnType`. */
export function cellReaderOf(type: FieldType, columnType: ColumnType): CellReader {
  if (columnType === "jsonb") return readFiles;
  const { read, instead } = typeMap[type];
  return instead?.column === columnType ? instead.read : read;
}
