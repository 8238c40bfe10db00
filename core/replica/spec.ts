/**
 * The shape of a replicated table: the planner derives it from the source's schema, the catalog in `<schema>_swap`
 * stores it, and the mapper and the writer use it.
 */
import type { FieldType, MissingPart } from "../source";

/** `jsonb` only for the details of attachments. */
export type ColumnType = "text" | "text[]" | "numeric" | "bool" | "date" | "timestamp" | "jsonb";

/** Settings of a base that change column types. */
export interface TypeSettings {
  linkedRecordsAsText: boolean;
  lookupsAsText: boolean;
  /** A column with the details of the files for each column of attachments, and so a view over them. */
  attachmentViews?: boolean | undefined;
  /** Basetide's own URLs for attachments; absent: the source's URLs. */
  attachmentUrls?: AttachmentUrls | undefined;
}

/** A name that people have chosen for a table, or for a column. */
export interface OwnName {
  tableId: string;
  /** Null: for the table itself. */
  fieldId: string | null;
  name: string;
}

/** Settings of a base that determine names. */
export interface NameSettings {
  /** Names stay as they are when they change in the source. */
  pinnedNames?: boolean | undefined;
  ownNames?: readonly OwnName[] | undefined;
}

/** Basetide's own URLs for attachments; the key that signs them is stored elsewhere. */
export interface AttachmentUrls {
  /** Their common prefix: `https://…/attachments/bas_…`. */
  prefix: string;
  /** Version of the key: URLs signed by an older key no longer work. */
  keyVersion: number;
}

export interface ColumnSpec {
  /** Unique in the table: the field's id in the source, or for details of attachments an id of ours. */
  fieldId: string;
  /** SQL name, unique in the table. */
  name: string;
  /** The field's name in the source. */
  sourceName: string;
  /** The source name that `name` was derived from, if that is another one: the name was pinned. */
  namedFor?: string | undefined;
  /** People have chosen `name`. */
  isOwnName?: true | undefined;
  description?: string | undefined;
  type: FieldType;
  sourceType: string;
  result?: FieldType | undefined;
  /** For single selects: the names of the choices in their order, if they are few. */
  choices?: string[] | undefined;
  /** For links: the source's id of the linked table, if known. */
  linkedTableId?: string | undefined;
  columnType: ColumnType;
  /** URLs of the attachments in its cells; absent: the source's. */
  attachmentUrls?: AttachmentUrls | undefined;
  /** For details of attachments: the id of the field that has the attachments. */
  filesOf?: string | undefined;
}

export interface TableSpec {
  tableId: string;
  /** SQL name, unique in the schema. */
  name: string;
  sourceName: string;
  /** As for a column. */
  namedFor?: string | undefined;
  isOwnName?: true | undefined;
  /** Of fields that were deleted while names were pinned: no other field gets these names by itself. */
  retired?: RetiredName[] | undefined;
  description?: string | undefined;
  /** All columns except `id` and `created_time`, which every table has first. */
  columns: ColumnSpec[];
  /** The base's selection leaves out fields or records: reads that need them cannot be answered from this table. */
  partial?: MissingPart | undefined;
  /** In the catalog: somebody else dropped the table or a column of it. It must be rebuilt. */
  isDamaged?: true | undefined;
  /** In the catalog: an operator wants it to be replaced by a new table. */
  isReplaced?: true | undefined;
}

export interface RetiredName {
  fieldId: string;
  name: string;
}

/**
 * The source's fields as they were when all cells of a table were read. Holds tokens by field id, for all fields that
 * the table's cells come from; a token that disappears means that such cells may have changed though no record did.
 */
export type ReadAs = Record<string, string[]>;

/** The key in `ReadAs` of the view whose records alone were read; absent if all were. No field has this id. */
export const READ_VIEW = "view";

/** A value that did not fit its column, or fit only after a repair. */
export interface CellIssue {
  recordId: string;
  /** SQL name of the column. */
  column: string;
  /** The source's value, as JSON text, cut at 1,000 characters. */
  value: string;
  /** For people: `not a number`, `not a date`, `#ERROR!`… */
  reason: string;
}

/** An attachment as it is stored next to its URL; what the source does not tell is absent. */
export interface FileDetails {
  id: string;
  filename?: string;
  /** The media type. */
  type?: string;
  /** Bytes. */
  size?: number;
  /** Pixels. */
  width?: number;
  height?: number;
}

/** One row for the writer: `id`, `created_time`, and a value per column name, as in JSON. */
export type Row = Record<
  string,
  string | number | boolean | null | (string | null)[] | (FileDetails | null)[]
>;
