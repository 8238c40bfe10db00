/** A base as the control plane knows it, and the one query that reads it. */

import type { Db } from "../context";
import type { ErrorCode } from "../errors";
import type { CellIssue } from "../replica/spec";

/** How many of the latest syncs say what is usual. */
export const USUAL_SWEEPS = 20;

export type BaseState = "starting" | "active" | "paused" | "needs_attention" | "deleting";
/** `rapid`: a turn over all tables, asking each for what was modified. */
export type SyncKind = "first" | "rebuild" | "sweep" | "rapid";

export interface BaseSettings {
  turbo: boolean;
  rapid: boolean;
  linkedRecordsAsText: boolean;
  lookupsAsText: boolean;
  paused: boolean;
}

/** A replicated table and how many records it has. */
export interface TableCount {
  name: string;
  source_name: string;
  /** The source's id of the table, for links into it; absent in what older versions reported. */
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

/** How far a first sync or a rebuild is. */
export interface Progress {
  kind: SyncKind;
  /** ISO 8601. */
  started_at: string;
  tables: {
    name: string;
    source_name: string;
    records_done: number;
    /** Null while nobody knows. */
    records_estimate: number | null;
    done: boolean;
  }[];
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
  resyncRequestedAt: Date | null;
  /** The last sync that completed; in rapid mode a turn, which knows nothing of deletes and computed fields. */
  sync: { kind: SyncKind; startedAt: Date; completedAt: Date; durationMs: number } | null;
  /**
   * The last time that every record was read: rows are as of then in every respect. `besideMs`: how long a sweep
   * beside rapid turns is expected to take.
   */
  sweep: { startedAt: Date; completedAt: Date; besideMs: number } | null;
  /** When the last sync ended, completed or not. */
  attemptedAt: Date | null;
  /** Why syncs fail, and since when; null when the last one completed. */
  error: { code: ErrorCode; message: string; since: Date } | null;
  progress: Progress | null;
  tables: TableCount[];
  issueCount: number;
  issues: BaseIssue[];
  /** Durations of the last 20 sweeps that completed (in rapid mode: of turns), the latest first. */
  recentSweepMs: number[];
  /** Records whose proxied write the replica does not show yet. */
  repairs: number;
  createdAt: Date;
}

/** Bases with everything about them, for the rows that `where` keeps. */
export async function selectBases(db: Db, where: ReturnType<Db>): Promise<Base[]> {
  const rows = await db<BaseRow[]>`
    select b.*, d.name as database_name,
      coalesce(d.external_host, c.public_host) as host, coalesce(d.external_port, c.public_port) as port,
      case b.sync_kind when 'rapid' then b.recent_rapid_ms else b.recent_sweep_ms end as recent_sweep_ms,
      (select count(*)::integer from repairs as p where p.base_id = b.id) as repairs
    from bases as b
      join databases as d on d.id = b.database_id
      left join clusters as c on c.id = d.cluster_id
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
    settings: {
      turbo: row.turbo,
      rapid: row.rapid,
      linkedRecordsAsText: row.linked_records_as_text,
      lookupsAsText: row.lookups_as_text,
      paused: row.is_paused,
    },
    database: {
      id: row.database_id,
      name: row.database_name,
      schema: row.schema_name,
      host: row.host,
      port: row.port,
    },
    resyncRequestedAt: row.resync_requested_at,
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
            besideMs: row.sweep_beside_ms!,
          },
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
    repairs: row.repairs,
    createdAt: row.created_at,
  };
}

interface BaseRow {
  id: string;
  account_id: string;
  platform: string;
  source_base_id: string;
  name: string;
  database_id: string;
  schema_name: string;
  state: BaseState;
  turbo: boolean;
  rapid: boolean;
  linked_records_as_text: boolean;
  lookups_as_text: boolean;
  is_paused: boolean;
  resync_requested_at: Date | null;
  sync_kind: SyncKind | null;
  sync_started_at: Date | null;
  sync_completed_at: Date | null;
  sync_duration_ms: number | null;
  sweep_started_at: Date | null;
  sweep_completed_at: Date | null;
  sweep_beside_ms: number | null;
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
}
