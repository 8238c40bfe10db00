/** A base as the control plane stores it, and the one query that reads it. */

import type { Db } from "../../context";
import type { ErrorCode } from "../../errors";
import type { CellIssue } from "../../replica";
import { hasNotifications } from "../feeds";
import { settingsOf } from "./setting-values";
import type { BaseSettings, SettingsRow } from "./settings";

/** Number of latest syncs that define the usual duration. */
export const USUAL_SWEEPS = 20;

export type BaseState = "starting" | "active" | "paused" | "needs_attention" | "deleting";
/**
 * `rapid`: a cycle, which asks every table for modified records; `live`: a batch of the changes that the source's
 * feed reported.
 */
export type SyncKind = "first" | "rebuild" | "sweep" | "rapid" | "live";

/** A replicated table and how many records it has. */
export interface TableCount {
  name: string;
  source_name: string;
  /** The source's id of the table, for links to it; absent in reports of older versions. */
  source_id?: string | undefined;
  records: number;
}

/** A cell that did not fit its column. */
export interface BaseIssue {
  /** SQL name of the table. */
  table: string;
  record_id: CellIssue["recordId"];
  /** SQL name of the column. */
  column: string;
  value: string;
  reason: string;
}

/** Progress of a first sync or a rebuild. */
export interface Progress {
  kind: SyncKind;
  /** ISO 8601. */
  started_at: string;
  tables: {
    name: string;
    source_name: string;
    records_done: number;
    /** Null while it is unknown. */
    records_estimate: number | null;
    done: boolean;
    /** The table has been read, and waits for transactions that lock it. */
    waiting?: boolean;
  }[];
}

/** The state of the feed of changes that live mode reads. */
export interface LiveState {
  /** `refused`: `reason` says what the key or the source lacks; the base is swept instead. */
  state: "making" | "on" | "refused";
  reason: string;
  /** Changes are reported by notifications, or found by polling. */
  by: "ping" | "poll";
  /** When the feed last reported a change. */
  changedAt: Date | null;
  readAt: Date | null;
  /** When it must be read again at the latest. */
  dueAt: Date | null;
  /** Records that are known to have changed and were not read again yet, and since when there are some. */
  waiting: number;
  waitingSince: Date | null;
  /** Records that only a sweep found changed, and when it last did. */
  missed: number;
  missedAt: Date | null;
  /** When SQL was last compared with the source, and since when it is known to be behind. */
  comparedAt: Date | null;
  driftedSince: Date | null;
  /** The feed lacks the changes before then: a sweep will find them. */
  gapSince: Date | null;
  /** When the source's webhook expires unless it is refreshed, on the source's clock. */
  expiresAt: Date | null;
}

export interface Base {
  id: string;
  accountId: string;
  platform: string;
  sourceBaseId: string;
  name: string;
  state: BaseState;
  settings: BaseSettings;
  database: { id: string; name: string; schema: string; host: string; port: number };
  /** Of the key that signs its attachment URLs; 0: it has none yet. */
  attachmentKeyVersion: number;
  /** The workspace whose bases share a cap on calls; null: no cap. */
  workspaceId: string | null;
  /** The user of the API key, as the source reports it; null if unknown. */
  sourceUserId: string | null;
  resyncRequestedAt: Date | null;
  /** A client has written something that no event reported: see `core/sync/engine/catch-up.ts`. */
  catchUpRequestedAt: Date | null;
  /** The last completed sync; in rapid mode a cycle, which does not see deletions and computed fields. */
  sync: { kind: SyncKind; startedAt: Date; completedAt: Date; durationMs: number } | null;
  /**
   * The last time that every record was read: rows are complete as of then. `backgroundMs`: the expected duration
   * of a sweep in the background of rapid cycles.
   */
  sweep: { startedAt: Date; completedAt: Date; backgroundMs: number } | null;
  /** How its changes are reported; null if live mode was never tried. */
  live: LiveState | null;
  /** When the last sync ended, completed or not. */
  attemptedAt: Date | null;
  /** Why syncs fail, and since when; null if the last one completed. */
  error: { code: ErrorCode; message: string; since: Date } | null;
  progress: Progress | null;
  tables: TableCount[];
  issueCount: number;
  issues: BaseIssue[];
  /** Durations of the last 20 completed sweeps (rapid mode: cycles; live mode: batches), the latest first. */
  recentSweepMs: number[];
  /** When the budget allows the next sync, if that is a while from now. */
  restsUntil: Date | null;
  /** Records whose proxied write the replica does not show yet. */
  repairs: number;
  createdAt: Date;
  /** All times are the server's; this process's clock is this far ahead of it, ms. See `serverNow`. */
  clockAheadMs: number;
  /** The control plane was read-only when the base was read: the data may be old. */
  isReadOnly: boolean;
}

/** Reads the bases that match `where`, with all their properties. */
export async function selectBases(db: Db, where: ReturnType<Db>): Promise<Base[]> {
  const rows = await db<BaseRow[]>`
    select b.*, d.name as database_name,
      coalesce(d.external_host, c.public_host) as host, coalesce(d.external_port, c.public_port) as port,
      case b.sync_kind
        when 'rapid' then b.recent_rapid_ms when 'live' then b.recent_live_ms else b.recent_sweep_ms
      end as recent_sweep_ms,
      (select count(*)::integer from repairs as p where p.base_id = b.id) as repairs,
      f.state as feed_state, f.reason as feed_reason, ${hasNotifications(db)} as has_notifications, f.changed_at, f.read_at,
      f.due_at, f.waiting, f.waiting_since, f.missed, f.missed_at, f.compared_at, f.drifted_since, f.gap_since,
      f.expires_at, clock_timestamp() as read_now,
      current_setting('transaction_read_only')::boolean as is_read_only
    from bases as b
      join databases as d on d.id = b.database_id
      left join clusters as c on c.id = d.cluster_id
      left join live_feeds as f on f.base_id = b.id
    where ${where}
    order by b.created_at, b.id`;
  return rows.map(toBase);
}

function toBase(row: BaseRow): Base {
  return {
    id: row.id,
    accountId: row.account_id,
    platform: row.platform,
    sourceBaseId: row.source_base_id,
    name: row.name,
    state: row.state,
    settings: settingsOf(row),
    database: {
      id: row.database_id,
      name: row.database_name,
      schema: row.schema_name,
      host: row.host,
      port: row.port,
    },
    attachmentKeyVersion: row.attachment_key_version,
    workspaceId: row.workspace_id,
    sourceUserId: row.source_user_id,
    resyncRequestedAt: row.resync_requested_at,
    catchUpRequestedAt: row.catch_up_requested_at,
    sync:
      row.sync_completed_at === null
        ? null
        : {
            kind: row.sync_kind!,
            startedAt: row.sync_started_at!,
            completedAt: row.sync_completed_at,
            durationMs: row.sync_duration_ms!,
          },
    sweep:
      row.sweep_completed_at === null
        ? null
        : {
            startedAt: row.sweep_started_at!,
            completedAt: row.sweep_completed_at,
            backgroundMs: row.sweep_background_ms!,
          },
    live: toLiveState(row),
    attemptedAt: row.attempted_at,
    error:
      row.error_code === null
        ? null
        : { code: row.error_code, message: row.error_message!, since: row.error_since! },
    progress: row.progress,
    tables: row.tables,
    issueCount: row.issue_count,
    issues: row.issues,
    recentSweepMs: row.recent_sweep_ms,
    restsUntil: row.rests_until,
    repairs: row.repairs,
    createdAt: row.created_at,
    clockAheadMs: Date.now() - row.read_now.getTime(),
    isReadOnly: row.is_read_only,
  };
}

function toLiveState(row: BaseRow): LiveState | null {
  if (row.feed_state === null) return null;
  return {
    state: row.feed_state,
    reason: row.feed_reason!,
    by: row.has_notifications ? "ping" : "poll",
    changedAt: row.changed_at,
    readAt: row.read_at,
    dueAt: row.due_at,
    waiting: row.waiting!,
    waitingSince: row.waiting_since,
    missed: Number(row.missed),
    missedAt: row.missed_at,
    comparedAt: row.compared_at,
    driftedSince: row.drifted_since,
    gapSince: row.gap_since,
    expiresAt: row.expires_at,
  };
}

interface BaseRow extends FeedRow, SettingsRow {
  id: string;
  account_id: string;
  platform: string;
  source_base_id: string;
  name: string;
  database_id: string;
  schema_name: string;
  state: BaseState;
  attachment_key_version: number;
  workspace_id: string | null;
  source_user_id: string | null;
  rests_until: Date | null;
  resync_requested_at: Date | null;
  catch_up_requested_at: Date | null;
  sync_kind: SyncKind | null;
  sync_started_at: Date | null;
  sync_completed_at: Date | null;
  sync_duration_ms: number | null;
  sweep_started_at: Date | null;
  sweep_completed_at: Date | null;
  sweep_background_ms: number | null;
  attempted_at: Date | null;
  error_code: ErrorCode | null;
  error_message: string | null;
  error_since: Date | null;
  progress: Progress | null;
  tables: TableCount[];
  issue_count: number;
  issues: BaseIssue[];
  created_at: Date;
  database_name: string;
  host: string;
  port: number;
  recent_sweep_ms: number[];
  repairs: number;
  read_now: Date;
  is_read_only: boolean;
}

/** All null without a feed. */
interface FeedRow {
  feed_state: LiveState["state"] | null;
  feed_reason: string | null;
  has_notifications: boolean | null;
  changed_at: Date | null;
  read_at: Date | null;
  due_at: Date | null;
  waiting: number | null;
  waiting_since: Date | null;
  missed: string | null;
  missed_at: Date | null;
  compared_at: Date | null;
  drifted_since: Date | null;
  gap_since: Date | null;
  expires_at: Date | null;
}
