/**
 * The interface of a source platform: schema, records, pages.
 *
 * `core/source/airtable` is the first platform. Cells have Airtable's JSON shapes (a later platform's adapter converts
 * into them): strings, numbers and booleans as they are; attachments `{id, url, …}`; people `{id, email?, name?}`;
 * links and selects arrays of strings; failed computations `{error}` or `{specialValue}`; empty cells are absent.
 */

import type { Connections, HeldConnection } from "../http/connections";
import type { ChangeFeed } from "./change-feed";
import type { SourceClock } from "./clock";
import type { Dialect } from "./dialect";
import type { SourceLimits, SourcePlan, WebhookFacts } from "./limits";

/** Our names for field types; the table of `docs/types.md` has one row for each. */
export type FieldType =
  | "ai_text"
  | "attachment"
  | "autonumber"
  | "barcode"
  | "button"
  | "checkbox"
  | "collaborator"
  | "collaborators"
  | "count"
  | "created_by"
  | "created_time"
  | "currency"
  | "date"
  | "date_time"
  | "duration"
  | "email"
  | "external_sync_source"
  | "formula"
  | "hashed"
  | "last_modified_by"
  | "last_modified_time"
  | "links"
  | "long_text"
  | "lookup"
  | "multiple_select"
  | "number"
  | "percent"
  | "phone"
  | "rating"
  | "rich_text"
  | "rollup"
  | "single_select"
  | "text"
  | "url"
  | "unknown";

export interface SourceField {
  id: string;
  name: string;
  type: FieldType;
  /** The platform's own name of the type, for comments and for display (`multipleRecordLinks`). */
  sourceType: string;
  description?: string | undefined;
  /** For selects: the names of the choices, in their order. */
  choices?: string[] | undefined;
  /** Declared result type of a computed field (formula, rollup, lookup, created and modified time). */
  result?: FieldType | undefined;
  /** For links: the id of the linked table. */
  linkedTableId?: string | undefined;
  /** The platform's options, unmodified; the adapter documents which of them are read. */
  options?: Record<string, unknown> | undefined;
}

export interface SourceView {
  id: string;
  name: string;
}

export interface SourceTable {
  id: string;
  name: string;
  description?: string | undefined;
  /** Empty if the primary field is not copied. */
  primaryFieldId: string;
  fields: SourceField[];
  /** Only in an answer to a request for views. */
  views?: SourceView[] | undefined;
  /** With a selection: only some of the fields, or only the records of the view `viewId`, are copied. */
  partial?: MissingPart | undefined;
  viewId?: string | undefined;
  /** The source no longer has that view: the table cannot be read. */
  isViewGone?: boolean | undefined;
}

/** What is missing from a copy of a table: some of its fields, or some of its records and perhaps fields. */
export type MissingPart = "fields" | "records";

export interface SourceSchema {
  /** The tables and fields that are copied. */
  tables: SourceTable[];
  /** With a selection: all tables, with all fields; see `selectedSchema`. */
  whole?: SourceTable[] | undefined;
  /** With a selection that asks about new tables: those that wait for an answer. */
  unanswered?: { id: string; name: string }[] | undefined;
  /**
   * Not an answer of the source, but what the replica knows: columns and their types, and not how fields are computed.
   */
  isRecalled?: true | undefined;
  /** The definitions that could not be read; absent if there are none. */
  unreadable?: UnreadableDefinition[] | undefined;
}

/** A definition in a schema that cannot be read, or only in part. */
export interface UnreadableDefinition {
  /** Of the table, or of the table that has the field; absent if its id cannot be read. */
  tableId?: string | undefined;
  /** Absent: the definition is that of a table. Empty: that of a field whose id cannot be read. */
  fieldId?: string | undefined;
  /** The definition in its list, for people: `field fldA`, or `field 3` if it has no id. */
  label: string;
  reason: string;
}

/** A record in an answer that cannot be read. */
export interface UnreadableRecord {
  /** Absent if its id cannot be read: it may be any record of the table. */
  id?: string | undefined;
  reason: string;
}

/** One record as the source returns it; `fields` is keyed by field id, empty cells are absent. */
export interface SourceRecord {
  id: string;
  /** ISO 8601, UTC; any other text if it cannot be read. */
  createdTime: string;
  fields: Record<string, unknown>;
}

/**
 * One page of a table's records. Records are parsed only when they are read: a sweep that finds no changes parses none.
 */
export interface RecordPage {
  /** Records in the page that can be read. */
  readonly size: number;
  /** Those that cannot, and those that it has more than once, of which the last counts; absent if there are none. */
  readonly unreadable?: readonly UnreadableRecord[] | undefined;
  /** Offset of the next page; absent on the last. */
  readonly offset: string | undefined;
  /** Id of the first record; undefined if there is none. */
  readonly firstId: string | undefined;
  /**
   * A 53-bit hash of all records: pages with the same hash have equal records in the same order. Undefined if the page
   * was requested without `isKnown`, or if equal records may look different in it.
   */
  readonly digest: number | undefined;
  /** What to remember of it, to recognize an equal page at the same place of the list; undefined if that is impossible. */
  readonly remembered?: RememberedPage | undefined;
  /** Id of record `index`. */
  id(index: number): string;
  /**
   * Returns a 64-bit hash of record `index`, as a bigint. Equal hashes mean an equal record; an unchanged record may
   * hash differently (key order), a changed one never hashes the same. Signed attachment URLs do not affect it.
   */
  fingerprint(index: number): bigint;
  record(index: number): SourceRecord;
  /** Does record `index` hold attachments, whose URLs expire? */
  hasAttachments(index: number): boolean;
  /** Frees the page's memory at once. Its records must not be read afterwards. */
  discard?(): void;
}

/** What must be remembered of a page to recognize an answer with an equal one before it is decompressed. */
export interface RememberedPage {
  digest: number;
  firstId: string | undefined;
  /** The part of its offset that depends only on the records; undefined for the last page of a list. */
  place: string | undefined;
  /** Length of the answer's text, bytes. */
  length: number;
  /** Checksum of that text, without the part that the offset has in it. */
  checksum: number;
  /** How long the checksum is trusted (performance.now()). */
  until: number;
}

export interface SourceBase {
  id: string;
  name: string;
  /** What the key may do with the base (`read`, `comment`, `edit`, `create`). */
  permission: string;
}

/** The owner of a key. */
export interface SourceIdentity {
  id: string;
  /** Only if the key may read it. */
  email?: string | undefined;
  /** What the key may do, if the platform reports it. */
  scopes?: string[] | undefined;
}

/** The part of a table that a list is limited to. */
export interface ListedPart {
  fields?: readonly string[] | undefined;
  view?: string | undefined;
}

/** A connection to one platform with one key. Every call may throw a BasetideError `source_…`. */
export interface SourceConnection {
  /**
   * This process's idle connections to the platform: a counted call acquires its permit with a connection already taken.
   * `take` throws BasetideError `source_unavailable`, or the signal's reason. Undefined if the platform is not reached over
   * a network.
   */
  readonly connections: Connections | undefined;
  /** Returns the same connection, whose next call is sent on `held`. */
  over(held: HeldConnection): SourceConnection;
  /** Reports changes; undefined if the platform does not. */
  readonly changeFeed: ChangeFeed | undefined;
  /** Returns the owner of the key: the cheapest check of a key. Uses no base's quota. */
  whoami(signal: AbortSignal): Promise<SourceIdentity>;
  /** Returns the bases that the key can see. */
  listBases(signal: AbortSignal): Promise<SourceBase[]>;
  /**
   * @param options.withViews true to include the views of each table
   * @param options.known the tables as they were last known: a definition that cannot be read stays as it was
   */
  getSchema(
    baseId: string,
    signal: AbortSignal,
    options?: { withViews?: boolean | undefined; known?: readonly SourceTable[] | undefined },
  ): Promise<SourceSchema>;
  /** Could this be the id of a record? Anything else need not be requested. */
  isRecordId(id: string): boolean;
  /**
   * Returns one page of up to 100 records, keyed by field id.
   *
   * @param options.offset from the previous page; absent starts at the first page
   * @param options.filter a formula of the platform; only matching records are returned
   * @param options.isKnown returns whether a page with this digest has been read before: its records will probably not
   *   be looked at
   * @param options.before what is remembered of the page at the same place of the list, if one was read before
   * @param options.fields ids: cells of other fields are left out of the answer
   * @param options.view id: only records that it shows are returned
   */
  listPage(
    baseId: string,
    table: SourceTable,
    options: {
      offset?: string | undefined;
      filter?: string | undefined;
      sort?: { field: string; direction: "asc" | "desc" }[];
      isKnown?: ((digest: number) => boolean) | undefined;
      before?: RememberedPage | undefined;
    } & ListedPart,
    signal: AbortSignal,
  ): Promise<RecordPage>;
  /**
   * Returns the records of `table` that have these ids (1 to 100 of them), as a page. Ids that are on no page are not
   * in the table; that is certain only once a page without an offset was read.
   *
   * @param options.offset from the previous page, with the same ids
   */
  listByIds(
    baseId: string,
    table: SourceTable,
    ids: readonly string[],
    options: { offset?: string | undefined } & ListedPart,
    signal: AbortSignal,
  ): Promise<RecordPage>;
  /**
   * Returns one record, or null if the source says that it does not exist.
   *
   * The platform may find the record in another table of the base than the requested one. `source_forbidden` may mean
   * that the record was deleted: only `listByIds` distinguishes that from a missing permission. `source_bad_answer`
   * with the detail `isRecord` means that the record exists, and cannot be read.
   */
  getRecord(
    baseId: string,
    tableId: string,
    recordId: string,
    signal: AbortSignal,
  ): Promise<SourceRecord | null>;
}

/** The properties of a platform that are known without a connection. */
export interface PlatformFacts {
  id: string;
  name: string;
  /** What is copied and what that requires, for display. */
  summary: string;
  /** The page where users find their API key. */
  keyHelpUrl: string;
  /**
   * The scopes that a key needs, in the platform's terms: to see the tables, and to read their records; `changes` if it
   * is to read the feed.
   */
  keyScopes?: { schema: string; records: string; changes?: string };
  /** Says why a text cannot be a key, without asking the platform; null if it may be one. */
  keyProblem?(text: string): string | null;
  limits: SourceLimits;
  /** The plans that users can choose for their workspace, in display order. */
  plans: readonly SourcePlan[];
  /** Absent if the platform has no webhooks. */
  webhooks?: WebhookFacts;
  ids: SourceIds;
  /** The page where users see a table's record or field, or what of these ids is given. */
  recordUrl(baseId: string, ...tableAndPartId: string[]): string;
  /** The API that clients use through the proxy; absent if the proxy does not forward it. */
  dialect?: Dialect;
  /**
   * A filter for `listPage`: records whose own cells were changed, or that were created, after `sinceMs` (ms since 1970
   * on the source's clock). Only a full check finds what the filter misses: deletions, and changes that the platform
   * does not count as a change of the record. Absent if the platform has no such filter.
   */
  modifiedSince?(sinceMs: number): string;
  /**
   * A filter for `listPage` that a random part of a table's records matches, to estimate how many there are; `share` is
   * that part: about one record of each page. Absent if the platform has no such filter.
   *
   * @param ids of some of the table's records, at least one
   */
  sample?(ids: readonly string[]): { filter: string; share: number };
}

type SourceIdKind = "table" | "field" | "record";

/** The form of ids. */
interface SourceIds {
  /** May the text be such an id? Anything else need not be requested. */
  mayBe(kind: SourceIdKind, text: string): boolean;
  /** Is the text surely such an id, and not a name given by a user? */
  isSurely(kind: SourceIdKind, text: string): boolean;
}

/** A platform as this installation reaches it. */
export interface Platform extends PlatformFacts {
  /** @param clock records the date of every answer, if the platform sends one */
  connect(apiKey: string, clock?: SourceClock): SourceConnection;
}
