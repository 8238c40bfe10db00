/** A base as the control plane stores it, and the one query that reads it. */

import type { Db } from "../../context";
import type { IssueGroup } from "../../replica";
import type { Progress, SyncedBase } from "../../sync/host";
import { hasNotifications } from "../feeds";
import { settingColumns, settingsOf } from "./setting-values";
import type { BaseSettings, SettingsRow } from "./settings";

/** Number of latest syncs that define the usual duration. */
export const USUAL_SWEEPS = 20;

/** The state of the feed of changes that live mode reads. */
export interface LiveState {
  /**
   * `refused`: `reason` says what the key or the source lacks; `failing`: why the feed cannot be read at the moment. The
   * base is swept instead.
   */
  state: "making" | "on" | "refused" | "failing";
  reason: string;
  /** Since when there is no feed although live mode is on, and when the source is asked again. */
  offSince: Date | null;
  retryAt: Date | null;
  /** Changes are reported by notifications, or found by polling. */
  by: "notification" | "poll";
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

export interface Base extends SyncedBase {
  accountId: string;
  name: string;
  settings: BaseSettings;
  /** Tables that are new in the source and wait until a person decides whether they are copied. */
  unansweredTables: { id: string; name: string }[];
  /** The workspace whose bases share a cap on calls; null: no cap. */
  workspaceId: string | null;
  /** How its changes are reported; null if live mode was never tried. */
  live: LiveState | null;
  /** When the last sync ended, completed or not. */
  attemptedAt: Date | null;
  progress: Progress | null;
  /** When it last got further than ever before. */
  progressAt: Date | null;
  /** All issues, and those among them that need a person: no errors of formulas, and not of a muted field. */
  issueCount: number;
  openIssueCount: number;
  /** The largest groups. */
  issues: IssueGroup[];
  /** Durations of the last 20 completed sweeps (rapid mode: cycles; live mode: batches), the latest first. */
  recentSweepMs: number[];
  /** When the budget allows the next sync, if that is a while from now. */
  restsUntil: Date | null;
  /** A pause that the source asked for and that has not ended. */
  blocked: { until: Date; reason: "rate_limited" | "billing_limit" } | null;
  /** Records whose proxied write the replica does not show yet. */
  repairs: number;
  /** When the oldest of those writes was made. */
  repairsSince: Date | null;
  createdAt: Date;
  /** The control plane was read-only when the base was read: the data may be old. */
  isReadOnly: boolean;
}

/**
 * The number of issues of the row `b` of `bases` that need a person. The groups that are not stored come after all that are,
 * and errors of formulas come last: if some are stored, all others are among the stored ones.
 */
export function openIssueCount(db: Db) {
  return db`(select coalesce(sum((g ->> 'count')::integer) filter (where g ->> 'kind' <> 'formula'
      and not b.muted_fields @> jsonb_build_array(
        jsonb_build_object('tableId', g -> 'table_id', 'fieldId', g -> 'field_id'))), 0)
    + case when bool_or(g ->> 'kind' = 'formula') then 0
      else b.issue_count - coalesce(sum((g ->> 'count')::integer), 0) end
    from jsonb_array_elements(b.issues) as g)::integer`;
}

/** Reads the bases that match `where`, with all their properties. */
export async function selectBases(db: Db, where: ReturnType<Db>): Promise<Base[]> {
  const rows = await db<BaseRow[]>`
    select b.id, b.account_id as "accountId", b.platform, b.source_base_id as "sourceBaseId", b.name, b.state,
      (select to_json(s) from (select ${settingColumns(db)}) as s) as settings,
      b.selection, b.unanswered_tables as "unansweredTables",
      json_build_object('id', d.id, 'name', d.name, 'schema', b.schema_name,
        'host', coalesce(d.external_host, c.public_host), 'port', coalesce(d.external_port, c.public_port)) as database,
      b.attachment_key_version as "attachmentKeyVersion", b.workspace_id as "workspaceId",
      b.source_user_id as "sourceUserId", b.resync_requested_at as "resyncRequestedAt",
      b.is_watched as "isWatched",
      b.attempted_at as "attemptedAt", b.tables,
      b.issue_count as "issueCount", ${openIssueCount(db)} as "openIssueCount", b.issues, b.rests_until as "restsUntil", b.created_at as "createdAt",
      (select count(*)::integer from repairs as p where p.base_id = b.id) as repairs,
      ${syncColumns(db)}, clock_timestamp() as "readNow"
    from bases as b
      join databases as d on d.id = b.database_id
      left join clusters as c on c.id = d.cluster_id
      left join live_feeds as f on f.base_id = b.id
    where ${where}
    order by b.created_at, b.id`;
  return rows.map(({ settings, readNow, ...row }) => ({
    ...withTimes(row),
    settings: settingsOf(settings),
    clockAheadMs: Date.now() - readNow.getTime(),
  }));
}

type BaseRow = Omit<Base, "settings" | "clockAheadMs"> & { settings: SettingsRow; readNow: Date };

/** The properties of a base that show how its syncs are. */
type SyncProperties = Pick<
  Base,
  | "sync"
  | "sweep"
  | "error"
  | "live"
  | "blocked"
  | "problems"
  | "progressAt"
  | "repairsSince"
  | "catchUpRequestedAt"
>;

/** They, and what belongs to them, as columns, from `bases as b` and `live_feeds as f`; `withTimes` converts the times. */
export function syncColumns(db: Db) {
  const ms = (column: string) => msOf(db, column);
  return db`
    case when b.sync_completed_at is not null then json_build_object('kind', b.sync_kind,
      'startedAt', ${ms("b.sync_started_at")}, 'completedAt', ${ms("b.sync_completed_at")},
      'durationMs', b.sync_duration_ms) end as sync,
    case when b.sweep_completed_at is not null then json_build_object(
      'startedAt', ${ms("b.sweep_started_at")}, 'completedAt', ${ms("b.sweep_completed_at")},
      'backgroundMs', b.sweep_background_ms) end as sweep,
    case when b.error_code is not null then json_build_object('code', b.error_code, 'message', b.error_message,
      'since', ${ms("b.error_since")}) end as error,
    case when f.base_id is not null then json_build_object('state', f.state, 'reason', f.reason,
      'by', case when ${hasNotifications(db)} then 'notification' else 'poll' end, 'changedAt', ${ms("f.changed_at")},
      'readAt', ${ms("f.read_at")}, 'dueAt', ${ms("f.due_at")}, 'waiting', f.waiting,
      'waitingSince', ${ms("f.waiting_since")}, 'missed', f.missed, 'missedAt', ${ms("f.missed_at")},
      'comparedAt', ${ms("f.compared_at")}, 'driftedSince', ${ms("f.drifted_since")},
      'gapSince', ${ms("f.gap_since")}, 'expiresAt', ${ms("f.expires_at")}, 'offSince', ${ms("f.off_since")},
      'retryAt', ${ms("f.retry_at")}) end as live,
    (select json_build_object('until', ${ms("q.blocked_until")}, 'reason', q.reason) from quota_blocks as q
      where q.key = b.platform || ':' || b.source_base_id and q.blocked_until > now()) as blocked,
    b.progress, ${ms("b.progress_at")}::float8 as "progressAt", b.problems,
    b.failing_tables as "failingTables", b.schema_error as "schemaError",
    (select ${ms("p.recorded_at")}::float8 from repairs as p where p.base_id = b.id order by p.recorded_at limit 1) as "repairsSince",
    ${ms("b.catch_up_requested_at")}::float8 as "catchUpRequestedAt",
    case b.sync_kind
      when 'rapid' then b.recent_rapid_ms when 'live' then b.recent_live_ms else b.recent_sweep_ms
    end as "recentSweepMs",
    current_setting('transaction_read_only')::boolean as "isReadOnly"`;
}

/** A time in JSON: ms since 1970. */
export function msOf(db: Db, column: string) {
  return db`floor(extract(epoch from ${db(column)}) * 1000)::bigint`;
}

/** Restores the times that JSON has as ms since 1970. */
export function withTimes<Row extends SyncProperties>(row: Row): Row {
  const { sync, sweep, error, live, blocked } = row;
  const { problems, progressAt, repairsSince, catchUpRequestedAt } = row;
  return {
    ...row,
    ...restored({ progressAt, repairsSince, catchUpRequestedAt }),
    problems: problems.length > 0 ? problems.map(restored) : problems,
    sync: restored(sync),
    sweep: restored(sweep),
    error: restored(error),
    live: restored(live),
    blocked: restored(blocked),
  };
}

/** The same for one object; other times stay. */
export function restored<Part extends object | null>(part: Part): Part {
  if (part === null) return part;
  // Copied once, and not entry by entry: a list has thousands of parts.
  const copy = { ...part } as Record<string, unknown>;
  for (const name in copy) {
    const value = copy[name];
    if (typeof value === "number" && TIME.test(name)) copy[name] = new Date(value);
  }
  return copy as Part;
}

const TIME = /(?:At|[sS]ince|[uU]ntil)$/;
