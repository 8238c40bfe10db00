/**
 * The shape of a replicated table: what the planner makes from the source's schema, what the catalog in
 * `<schema>_swap` remembers, and what the mapper and the writer work from.
 */
import type { FieldType } from "../source";

export type ColumnType = "text" | "text[]" | "numeric" | "bool" | "date" | "timestamp";

/** Settings of a base that change column types. */
export interface TypeSettings {
  linkedRecordsAsText: boolean;
  lookupsAsText: boolean;
  /** How attachments are reached by URLs of ours; absent: by the source's. */
  attachmentUrls?: AttachmentUrls | undefined;
}

/** URLs of ours for attachments; the key that signs them is kept elsewhere. */
export interface AttachmentUrls {
  /** What they begin with: `https://…/attachments/bas_…`. */
  prefix: string;
  /** Of the key: what an older one has signed opens nothing. */
  keyVersion: number;
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
  /** Of links: the source's id of the table that they lead to, where it says so. */
  linkedTableId?: string | undefined;
  columnType: ColumnType;
  /** Attachments in its cells have these URLs; absent: the source's. */
  attachmentUrls?: AttachmentUrls | undefined;
}

export interface TableSpec {
  tableId: string;
  /** SQL name, unique in the schema. */
  name: string;
  sourceName: string;
  description?: string | undefined;
  /** Which form its COMMENTs are of; absent in what older versions wrote. */
  commentForm?: number | undefined;
  /** All columns but `id` and `created_time`, which every table has first. */
  columns: ColumnSpec[];
  /** In the catalog: the table, or a column of it, was dropped behind our back. It is to be rebuilt. */
  isDamaged?: true | undefined;
}

/**
 * What the source's fields were when all cells of a table were read: by field id, of all fields that its cells come
 * from, tokens that are lost when such cells may have changed though no record did.
 */
export type ReadAs = Record<string, string[]>;

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
