/**
 * What every source platform looks like to the rest of Basetide: schema, records, pages.
 *
 * `core/source/airtable` is the first platform. Cells keep Airtable's JSON shapes (a later platform's adapter
 * converts into them): strings, numbers and booleans as they are; attachments `{id, url, …}`; people
 * `{id, email?, name?}`; links and selects arrays of strings; failed computations `{error}` or `{specialValue}`;
 * empty cells are absent.
 */

import type { HeldConnection } from "../http/connections";
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
  /** The platform's own word for the type, for comments and for people (`multipleRecordLinks`). */
  sourceType: string;
  description?: string | undefined;
  /** Declared type of what a computed field yields (formula, rollup, lookup, created and modified time). */
  result?: FieldType | undefined;
  /** Of links: the id of the table that they lead to. */
  linkedTableId?: string | undefined;
  /** The platform's options as they came; what is read from them is for the adapter to say. */
  options?: Record<string, unknown> | undefined;
}

export interface SourceTable {
  id: string;
  name: string;
  description?: string | undefined;
  primaryFieldId: string;
  fields: SourceField[];
}

export interface SourceSchema {
  tables: SourceTable[];
}

/** One record as the source gives it; `fields` is keyed by field id, empty cells are absent. */
export interface SourceRecord {
  id: string;
  /** ISO 8601, UTC. */
  createdTime: string;
  fields: Record<string, unknown>;
}

/**
 * One page of a table's records. Records are parsed only where somebody asks: in a quiet sweep nobody does.
 */
export interface RecordPage {
  /** Records in the page. */
  readonly size: number;
  /** Where the next page starts; absent on the last. */
  readonly offset: string | undefined;
  /** Id of record `index`. */
  id(index: number): string;
  /**
   * 64-bit hash of record `index`, as a bigint. Equal hashes mean an equal record; a record may hash differently though nothing
   * changed (key order), never the same though something did. Signed attachment URLs do not enter it.
   */
  fingerprint(index: number): bigint;
  record(index: number): SourceRecord;
  /** Does record `index` hold attachments, whose URLs expire? */
  hasAttachments(index: number): boolean;
}

export interface SourceBase {
  id: string;
  name: string;
  /** What the key may do there (`read`, `comment`, `edit`, `create`). */
  permission: string;
}

/** Who a key belongs to. */
export interface SourceIdentity {
  id: string;
  /** Only where the key may read it. */
  email?: string | undefined;
  /** What the key may do, where the platform says so. */
  scopes?: string[] | undefined;
}

/** The kept connections of this process to a platform: a call that is counted is granted with one in hand. */
export interface SourceConnections {
  /** By how much longer one request may be on its way than another, ms. */
  readonly spreadMs: number;
  /** Counted requests are going to be sent: some connections are kept open for them. */
  keepWarm(): void;
  /** One that rests, at once; undefined where there is none. */
  tryTake(): HeldConnection | undefined;
  /** @throws BasetideError `source_unavailable`; the signal's reason */
  take(signal: AbortSignal): Promise<HeldConnection>;
}

/** How a connection reaches one platform with one key. Every call may throw a BasetideError `source_…`. */
export interface SourceConnection {
  /** Undefined where the platform is not asked over a network. */
  readonly connections: SourceConnections | undefined;
  /** The same, whose next call is sent on `held`. */
  over(held: HeldConnection): SourceConnection;
  /** Tells what has changed; undefined where the platform does not. */
  readonly changeFeed: ChangeFeed | undefined;
  /** Who the key belongs to: the cheapest check that it is one. Costs no base any of its quota. */
  whoami(signal: AbortSignal): Promise<SourceIdentity>;
  /** Bases the key can see. */
  listBases(signal: AbortSignal): Promise<SourceBase[]>;
  getSchema(baseId: string, signal: AbortSignal): Promise<SourceSchema>;
  /** Could this be the id of a record? What is not is no use asking for. */
  isRecordId(id: string): boolean;
  /**
   * One page of up to 100 records, keyed by field id.
   *
   * @param options.offset from the page before; absent starts at the front
   * @param options.filter a formula of the platform; only records that match
   */
  listPage(
    baseId: string,
    table: SourceTable,
    options: {
      offset?: string | undefined;
      filter?: string | undefined;
      sort?: { field: string; direction: "asc" | "desc" }[];
    },
    signal: AbortSignal,
  ): Promise<RecordPage>;
  /**
   * The records of `table` that have these ids (1 to 100 of them), as a page. Ids that are on no page are not in
   * the table; that is certain only once a page without an offset was read.
   *
   * @param options.offset from the page before, asked for with the same ids
   */
  listByIds(
    baseId: string,
    table: SourceTable,
    ids: readonly string[],
    options: { offset?: string | undefined },
    signal: AbortSignal,
  ): Promise<RecordPage>;
  /**
   * One record, or null when the source says that it does not exist.
   *
   * The platform may find the record in another table of the base than it was asked for in. `source_forbidden` may
   * stand for a record that is gone: only `listByIds` tells that from a missing permission.
   */
  getRecord(
    baseId: string,
    tableId: string,
    recordId: string,
    signal: AbortSignal,
  ): Promise<SourceRecord | null>;
}

/** What is known of a platform without a connection to it. */
export interface PlatformFacts {
  id: string;
  name: string;
  /** What is copied, and what that takes, for people. */
  summary: string;
  /** Where people find their API key. */
  keyHelpUrl: string;
  /**
   * What a key must be allowed, in the platform's words: to see the tables, and to read their records; `changes`, if
   * it is to read what changes from a feed.
   */
  keyScopes?: { schema: string; records: string; changes?: string };
  limits: SourceLimits;
  /** Those that people may say their workspace has, in the order that they are shown. */
  plans: readonly SourcePlan[];
  /** Absent where the platform has no webhooks. */
  webhooks?: WebhookFacts;
  ids: SourceIds;
  /** Where people see the record, or its base where only that is given. */
  recordUrl(baseId: string, ...tableAndRecordId: string[]): string;
  /** The API that clients speak through the proxy; absent where the proxy does not forward it. */
  dialect?: Dialect;
  /**
   * A filter for `listPage`: records whose own cells were changed, or that were created, after `sinceMs` (ms since
   * 1970 on the source's clock). What it misses only a whole read finds: deletes, and whatever the platform does not
   * count as a change of the record. Absent where the platform has no such filter.
   */
  modifiedSince?(sinceMs: number): string;
}

export type SourceIdKind = "table" | "field" | "record";

/** What ids look like. */
export interface SourceIds {
  /** May the text be such an id? What is none is no use asking for. */
  mayBe(kind: SourceIdKind, text: string): boolean;
  /** Is the text such an id, and no name that somebody has given? */
  isSurely(kind: SourceIdKind, text: string): boolean;
}

/** A platform as this installation reaches it. */
export interface Platform extends PlatformFacts {
  /**
   * @param clock is told the date of every answer, where the platform gives one
   */
  connect(apiKey: string, clock?: SourceClock): SourceConnection;
}
