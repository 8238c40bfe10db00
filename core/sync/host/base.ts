/** A base as sync needs it, and what sync reports about it. The owner of these facts implements `Host`. */
import type { BasetideError, ErrorCode } from "../../errors";
import type { IssueGroup, NameSettings, TypeSettings, WantedIndex } from "../../replica";
import type { SourceSelection } from "../../source";

export type BaseState = "starting" | "active" | "paused" | "needs_attention" | "moving" | "deleting";
/**
 * `rapid`: a cycle, which asks every table for modified records; `live`: a batch of the changes that the source's
 * feed reported.
 */
export type SyncKind = "first" | "rebuild" | "sweep" | "rapid" | "live";

/** The last known names: the index stays with the field when it is renamed. */
export interface IndexSetting extends WantedIndex {
  table: string;
  column: string;
}

/** The settings of a base that sync follows. */
export interface SyncSettings extends TypeSettings, NameSettings {
  turbo: boolean;
  rapid: boolean;
  live: boolean;
  ownAttachmentUrls: boolean;
  indexes: IndexSetting[];
  linkViews: boolean;
  history: boolean;
  historyDays: number;
  notify: boolean;
  aliasDays: number;
}

/** A replicated table and how many records it has. */
export interface TableCount {
  name: string;
  source_name: string;
  /** The source's id of the table, for links to it; absent in reports of older versions. */
  source_id: string;
  records: number;
}

/** A table that cannot be read; as the management API shows it. Times are ISO 8601. */
export interface FailingTable {
  /** The source's id of the table. */
  table_id: string;
  /** The source's name of the table. */
  name: string;
  code: ErrorCode;
  /** Names the table. */
  message: string;
  since: string;
  next_try_at: string;
}

/** Why the schema cannot be read; changes of it are not noticed meanwhile. */
export interface SchemaError {
  code: ErrorCode;
  message: string;
  /** ISO 8601. */
  since: string;
}

/**
 * `missing_table`: a table of the source is not in the replica; `outdated_table`: one must be rebuilt, and still has its
 * former columns; `settings`: settings are not applied.
 */
export type ProblemKind = "missing_table" | "outdated_table" | "settings";

export interface SyncProblem {
  kind: ProblemKind;
  /** The source's id and name of the table; null and empty if it concerns the whole base. */
  tableId: string | null;
  name: string;
  /** Why; empty if nothing has failed. */
  message: string;
  since: Date;
  /** The next attempt; null: soon, or not known. */
  nextAt: Date | null;
}

/** A problem with times relative to now, ms: they depend on no clock. */
export interface FoundProblem extends Omit<SyncProblem, "since" | "nextAt"> {
  agoMs: number;
  nextInMs: number | null;
}

/** Progress of a first sync or a rebuild. */
export interface Progress {
  kind: SyncKind;
  /** ISO 8601. */
  started_at: string;
  /** Pages of records that were read. */
  pages?: number;
  /** Calls of this sync; absent if other work makes calls at the same time. */
  calls?: number;
  tables: {
    name: string;
    source_name: string;
    records_done: number;
    /** Null while it is unknown. */
    records_estimate: number | null;
    /** The standard error of the estimate, in records; absent if it is a count. */
    records_error?: number;
    /** The table is live: it can be queried. */
    done: boolean;
    /** The table has been read, and waits for transactions that lock it. */
    waiting?: boolean;
  }[];
}

export interface SyncedBase {
  id: string;
  platform: string;
  sourceBaseId: string;
  state: BaseState;
  settings: SyncSettings;
  /** What is copied; null: everything. */
  selection: SourceSelection | null;
  database: { id: string; name: string; schema: string; host: string; port: number };
  /** Of the key that signs its attachment URLs; 0: it has none yet. */
  attachmentKeyVersion: number;
  /** The user of the API key, as the source reports it; null if unknown. */
  sourceUserId: string | null;
  resyncRequestedAt: Date | null;
  /** A client has written something that no event reported: see `core/sync/engine/catch-up.ts`. */
  catchUpRequestedAt: Date | null;
  /** A page has shown the progress of the first sync. */
  isWatched: boolean;
  /** The last completed sync; in rapid mode a cycle, which does not see deletions and computed fields. */
  sync: { kind: SyncKind; startedAt: Date; completedAt: Date; durationMs: number } | null;
  /**
   * The last time that every record was read: rows are complete as of then. `backgroundMs`: the expected duration
   * of a sweep in the background of rapid cycles.
   */
  sweep: { startedAt: Date; completedAt: Date; backgroundMs: number } | null;
  /** Why syncs fail, and since when; null if the last one completed. */
  error: { code: ErrorCode; message: string; since: Date } | null;
  /** Tables that cannot be read; the others are synced. */
  failingTables: FailingTable[];
  /** Why the schema cannot be read, if it cannot; the rows of known tables are synced. */
  schemaError: SchemaError | null;
  /** What keeps the replica from equaling the source although syncs complete. */
  problems: SyncProblem[];
  tables: TableCount[];
  /** All times are the server's; this process's clock is this far ahead of it, ms. See `serverNow`. */
  clockAheadMs: number;
}

/** What people may change of a base at any time. */
export interface SyncFacts {
  id: string;
  state: BaseState;
  settings: SyncSettings;
  selection: SourceSelection | null;
  resyncRequestedAt: Date | null;
  schemaCheckRequestedAt: Date | null;
  catchUpRequestedAt: Date | null;
  isWatched: boolean;
  /** The replica's database: a move changes it. */
  databaseId: string;
  /** Of the replica's server; null if unknown. */
  timeline: string | null;
  /** Changes with the API key. */
  keyVersion: string;
  /** Changes with the key of the attachment URLs. */
  attachmentKeyVersion: number;
}

/** The result of a sync, reported when it ended. */
export interface RunReport {
  kind: SyncKind;
  startedAt: Date;
  /** Null when it failed. */
  completedAt: Date | null;
  /** A sweep in the background of rapid cycles or live batches: those determine the state of the base. */
  isBackground?: boolean | undefined;
  /** Records. */
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
  /** Requests to the source. */
  requests: number;
  /** Time spent waiting for the quota. */
  waitMs: number;
  error?: Pick<BasetideError, "code" | "message"> | undefined;
  /** Tables that could not be read, although the sync has completed for the others. */
  failing?: FailingTable[] | undefined;
  /** Ids of tables in which records have changed in the source; their attachments' new URLs are no change. */
  changedTables?: string[] | undefined;
  /** Absent: unchanged. */
  tables?: TableCount[] | undefined;
  issueCount?: number | undefined;
  /** Their groups. */
  issues?: IssueGroup[] | undefined;
}

/** A worker's limits for one base. */
export interface Allowance {
  baseId: string;
  /** Null: no cap. */
  workspace: { id: string; name: string } | null;
  /** Calls of sync that are left to all bases of the workspace; Infinity without a cap. */
  left: number;
  /** Bases that share them. */
  bases: number;
  /** For this base; Infinity without a cap. */
  ratePerSecond: number;
  /** When the next month begins. */
  endsAt: Date;
  /** The key's user, if the user's keys sync so many bases that the source's limit per user may apply. */
  user: string | null;
}
