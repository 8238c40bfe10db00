/**
 * The shape of a replicated table: what the planner makes from the source's schema, what the catalog in
 * `<schema>_swap` remembers, and what the mapper and the writer work from.
 */
import type { FieldType } from "../source/types";

export type ColumnType = "text" | "text[]" | "numeric" | "bool" | "date" | "timestamp";

/** Settings of a base that change column types. */
export interface TypeSettings {
  linkedRecordsAsText: boolean;
  lookupsAsText: boolean;
}

export interface ColumnSpec {
  fieldId: string;
  /** SQL name, unique in the table. */
  name: string;
  /** The field's name in the source. */
  sourceName: string;
  description?: string | undefined;
  type: FieldType;
  sourceType: string;
  result?: FieldType | undefined;
  columnType: ColumnType;
}

export interface TableSpec {
  tableId: string;
  /** SQL name, unique in the schema. */
  name: string;
  sourceName: string;
  description?: string | undefined;
  /** All columns but `id` and `created_time`, which every table has first. */
  columns: ColumnSpec[];
}

/** A value that did not fit its column, or fitted only after a repair. */
export interface CellIssue {
  recordId: string;
  /** SQL name of the column. */
  column: string;
  /** What the source had, as JSON text, cut at 1,000 characters. */
  value: string;
  /** For people: `not a number`, `not a date`, `#ERROR!`… */
  reason: string;
}

/** One row for the writer: `id`, `created_time`, and a value per column name, ready for JSON → recordset. */
export type Row = Record<string, string | number | boolean | null | (string | null)[]>;
