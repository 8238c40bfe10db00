/**
 * Sync runs: what each sync did, and the state of a base after its last one. Stored for 30 days.
 *
 * A small base is synced every second, which would be 2.6 million rows in that time. Therefore a completed sweep,
 * cycle or batch is merged into the row of the previous one: for up to a minute in any case, for up to an hour if
 * none of them changed anything. First syncs, rebuilds and failures have rows of their own, and end the rows before
 * them.
 */
import type { Context, Db } from "../../context";
import { type ErrorCode, nextStep } from "../../errors";
import { jsonParameter, serverNow, serverTime, storedMessage } from "../../postgres";
import type { Progress, RunReport, SyncKind } from "../../sync/host";
import { type Base, USUAL_SWEEPS } from "./base-row";

/** How long the syncs of one row may span, with changes and without. */
const JOINED = "1 minute";
const JOINED_UNCHANGED = "1 hour";
/** How many times slower a background sweep is, by its share of the requests. */
const BESIDE_SLOWNESS = 6;
/** Times the greatest age in a row, and ms, up to which one more sync may share the row. */
const LAG_FACTOR = 3;
const LAG_NEVER_STANDS_OUT_MS = 60_000;

/** One sync, or several similar ones. */
export interface SyncRun {
  id: string;
  kind: SyncKind;
  /** Number of syncs in the row. */
  syncs: number;
  /** Of the first. */
  started_at: Date;
  /** Of the last; null if it failed. */
  completed_at: Date | null;
  /** The mean, and the longest. */
  duration_ms: number | null;
  longest_ms: number | null;
  /** Records that the last one read; all other counts are sums. */
  seen: number;
  inserted: number;
  updated: number;
  deleted: number;
  requests: number;
  wait_ms: number;
  error_code: ErrorCode | null;
  error_message: string | null;
}

/**
 * Stores the run, and updates the base's columns about its last sync. A completed run makes the base `active` and
 * clears its error; one with an error that needs a person makes it `needs_attention`. A base that was paused or
 * marked for deletion meanwhile stays so. A run of a deleted base is not stored.
 *
 * @param options.isCapOver the month's calls were spent; if the run has completed, they are not any more
 * @param options.resyncRequestedAt the request that was known when the run began. Only that one is done: the time at
 *   which the run began is known later by the latency of a statement
 */
export async function recordRun(
  db: Db,
  baseId: string,
  report: RunReport,
  { isCapOver = false, resyncRequestedAt = null }: RunOptions = {},
): Promise<void> {
  const told = {
    ...report,
    ...outcomeOf(report),
    resyncRequestedAt,
    startedAt: serverTime(db, report.startedAt),
    completedAt: report.completedAt && serverTime(db, report.completedAt),
    tables: report.tables ? jsonParameter(report.tables) : null,
    issues: report.issues ? jsonParameter(report.issues) : null,
  };
  // One statement, because every sync of every base ends with it.
  await db`
    with before as (select sync_started_at, sync_kind from bases where id = ${baseId}),
    lag as (${lagOf(db, told)}),
    updated as (${report.isBackground ? updateBackground(db, baseId, told) : updateBase(db, baseId, told)}),
    ${report.changedTables?.length ? db`changed as (${markChanged(db, baseId, report.changedTables)}),` : db``}
    ${isCapOver && told.isCompleted && !report.isBackground ? db`lifted as (${liftCap(db, baseId)}),` : db``}
    joined as (${joinRun(db, baseId, told)})
    insert into sync_runs (base_id, kind, started_at, completed_at, total_ms, longest_ms, seen, inserted, updated,
      deleted, requests, wait_ms, lag_ms, max_lag_ms, error_code, error_message)
    select id, ${told.kind}, ${told.startedAt}::timestamptz, ${told.completedAt}::timestamptz,
      ${told.durationMs}::float8, ${told.durationMs}::float8, ${told.seen}::int, ${told.inserted}::int,
      ${told.updated}::int, ${told.deleted}::int, ${told.requests}::int, ${told.waitMs}::float8,
      lag.mean_ms, lag.max_ms, ${told.runErrorCode}, ${told.runErrorMessage}
    from updated, lag where not exists (select from joined)`;
}

function markChanged(db: Db, baseId: string, tableIds: string[]) {
  return db`update source_tables set changed_at = now() where base_id = ${baseId} and table_id = any (${tableIds})`;
}

function liftCap(db: Db, baseId: string) {
  return db`
    delete from quota_blocks where reason = 'billing_limit'
      and key = (select platform || ':' || source_base_id from bases where id = ${baseId})`;
}

/**
 * Returns the base as `recordRun` leaves it after a completed sweep that was not requested: with this, the base need not
 * be read again for the next one.
 */
export function afterSweep(base: Base, { startedAt, completedAt, tables = base.tables }: RunReport): Base {
  const durationMs = completedAt!.getTime() - startedAt.getTime();
  const onServer = (at: Date) => new Date(at.getTime() - base.clockAheadMs);
  const times = { startedAt: onServer(startedAt), completedAt: onServer(completedAt!) };
  return {
    ...base,
    attemptedAt: serverNow(base),
    sync: { kind: "sweep", ...times, durationMs },
    sweep: { ...times, backgroundMs: durationMs * BESIDE_SLOWNESS },
    recentSweepMs: [durationMs, ...base.recentSweepMs].slice(0, USUAL_SWEEPS),
    error: null,
    progress: null,
    tables,
  };
}

interface RunOptions {
  isCapOver?: boolean;
  resyncRequestedAt?: Date | null;
}

type Told = Omit<RunReport, "tables" | "issues" | "startedAt" | "completedAt"> &
  ReturnType<typeof outcomeOf> & { tables: string | null; issues: string | null } & {
    resyncRequestedAt: Date | null;
    startedAt: ReturnType<typeof serverTime>;
    completedAt: ReturnType<typeof serverTime> | null;
  };

function outcomeOf(report: RunReport) {
  const isCompleted = report.completedAt !== null;
  const error = isCompleted ? undefined : (report.error ?? { code: "internal", message: "The sync failed" });
  const failing = isCompleted ? (report.failing ?? []) : [];
  return {
    isCompleted,
    durationMs: isCompleted ? report.completedAt!.getTime() - report.startedAt.getTime() : null,
    errorCode: (error?.code ?? null) as ErrorCode | null,
    errorMessage: error ? storedMessage(error.message) : null,
    /** Of the run's row: a completed one names the tables that it could not read. */
    runErrorCode: error?.code ?? failing[0]?.code ?? null,
    runErrorMessage: storedMessage(error?.message ?? failing.map(({ message }) => message).join(" ")) || null,
    isUnchanged: report.inserted + report.updated + report.deleted === 0,
  };
}

function updateBase(db: Db, baseId: string, told: Told) {
  const { kind, isCompleted, durationMs, errorCode } = told;
  const needsAttention = errorCode !== null && nextStep[errorCode] === "needs_attention";
  // A cycle or a batch has not read every record.
  const isWhole = isCompleted && kind !== "rapid" && kind !== "live";
  return db`
    update bases set
      state = case
        when state in ('paused', 'moving', 'deleting') then state
        when ${isCompleted}::boolean then 'active'
        when ${needsAttention}::boolean then 'needs_attention'
        else state
      end,
      attempted_at = now(),
      sync_kind = case when ${isCompleted}::boolean then ${kind} else sync_kind end,
      sync_started_at = case when ${isCompleted}::boolean then ${told.startedAt} else sync_started_at end,
      sync_completed_at = coalesce(${told.completedAt}, sync_completed_at),
      sync_duration_ms = coalesce(${durationMs}, sync_duration_ms),
      recent_sweep_ms = case when ${isCompleted && kind === "sweep"}::boolean
        then (array[${durationMs}::float8] || recent_sweep_ms)[:${USUAL_SWEEPS}] else recent_sweep_ms end,
      recent_rapid_ms = case when ${isCompleted && kind === "rapid"}::boolean
        then (array[${durationMs}::float8] || recent_rapid_ms)[:${USUAL_SWEEPS}] else recent_rapid_ms end,
      recent_live_ms = case when ${isCompleted && kind === "live"}::boolean
        then (array[${durationMs}::float8] || recent_live_ms)[:${USUAL_SWEEPS}] else recent_live_ms end,
      sweep_started_at = case when ${isWhole}::boolean then ${told.startedAt} else sweep_started_at end,
      sweep_completed_at = case when ${isWhole}::boolean then ${told.completedAt} else sweep_completed_at end,
      sweep_background_ms = case when ${isWhole}::boolean
        then ${durationMs}::float8 * ${BESIDE_SLOWNESS} else sweep_background_ms end,
      error_code = ${errorCode},
      error_message = ${told.errorMessage},
      error_since = case when ${isCompleted}::boolean then null else coalesce(error_since, now()) end,
      resync_requested_at = case
        -- A Date has only milliseconds.
        when ${isWhole}::boolean
          and date_trunc('milliseconds', resync_requested_at) <= ${told.resyncRequestedAt}::timestamptz then null
        else resync_requested_at
      end,
      progress = case when ${isCompleted}::boolean then null else progress end,
      tables = ${unlessSame(db, told.tables, "tables")},
      issue_count = coalesce(${told.issueCount ?? null}, issue_count),
      issues = ${unlessSame(db, told.issues, "issues")}
    where id = ${baseId}
    returning id`;
}

function updateBackground(db: Db, baseId: string, told: Told) {
  return db`
    update bases set
      sweep_started_at = case when ${told.isCompleted}::boolean then ${told.startedAt} else sweep_started_at end,
      sweep_completed_at = coalesce(${told.completedAt}, sweep_completed_at),
      sweep_background_ms = coalesce(${told.durationMs}, sweep_background_ms),
      tables = ${unlessSame(db, told.tables, "tables")},
      issue_count = coalesce(${told.issueCount ?? null}, issue_count),
      issues = ${unlessSame(db, told.issues, "issues")}
    where id = ${baseId}
    returning id`;
}

/**
 * The column's new value. One that is equal to the old one is not stored again: Postgres would write large values once
 * more, outside of the row, after every sync.
 */
function unlessSame(db: Db, json: string | null, column: "tables" | "issues") {
  return db`coalesce(nullif(${json}::text::jsonb, ${db(column)}), ${db(column)})`;
}

/** Merges the run into the row of the previous one, if they may share a row. */
function joinRun(db: Db, baseId: string, told: Told) {
  const { kind, startedAt, durationMs } = told;
  const mayJoin = told.isCompleted && (kind === "sweep" || kind === "rapid" || kind === "live");
  return db`
    update sync_runs as r set
      syncs = syncs + 1,
      completed_at = ${told.completedAt},
      total_ms = total_ms + ${durationMs}::float8,
      longest_ms = greatest(longest_ms, ${durationMs}::float8),
      seen = ${told.seen},
      inserted = inserted + ${told.inserted},
      updated = updated + ${told.updated},
      deleted = deleted + ${told.deleted},
      requests = requests + ${told.requests},
      wait_ms = wait_ms + ${told.waitMs},
      lag_ms = coalesce(lag_ms + lag.mean_ms, lag.mean_ms, lag_ms),
      max_lag_ms = greatest(max_lag_ms, lag.max_ms)
    from lag
    where ${mayJoin}::boolean and completed_at is not null
      and error_message is not distinct from ${told.runErrorMessage}
      and r.id = (
        select id from sync_runs where base_id = ${baseId} and kind = ${kind} order by id desc limit 1)
      and (started_at > ${startedAt}::timestamptz - ${JOINED}::interval
        or (${told.isUnchanged}::boolean and inserted + updated + deleted = 0
          and started_at > ${startedAt}::timestamptz - ${JOINED_UNCHANGED}::interval))
      -- An hour without changes is one row: an age that stands out has a row of its own.
      and coalesce(lag.max_ms <= greatest(${LAG_FACTOR} * max_lag_ms, ${LAG_NEVER_STANDS_OUT_MS}), true)
      and not exists (
        select from sync_runs as later
        where later.base_id = ${baseId} and later.id > r.id
          and (later.completed_at is null or later.kind not in ('sweep', 'rapid', 'live')))
    returning r.id`;
}

/**
 * The age of the data since the sync before: its mean, and its greatest, when this one replaced it. Age grows from the
 * start of one sync to the end of the next. In live mode nothing ages until something changes: there it is the time
 * that a batch took. Nothing for failures, for sweeps in the background, and for a first sync: there was no data before.
 */
function lagOf(db: Db, { kind, completedAt, durationMs, isBackground }: Told) {
  const counts = kind !== "first" && isBackground !== true;
  const own = db`${durationMs}::float8`;
  const max = db`
    case when ${kind === "live"}::boolean or b.sync_started_at is null or b.sync_kind = 'live' then ${own}
      else greatest(${own}, extract(epoch from ${completedAt}::timestamptz - b.sync_started_at) * 1000) end`;
  return db`
    select case when ${counts}::boolean then (${max} + ${own}) / 2 end as mean_ms,
      case when ${counts}::boolean then ${max} end as max_ms
    from (select) as one left join before as b on true`;
}

/**
 * Saves the progress of a running first sync or rebuild; `recordRun` of a completed one clears it.
 *
 * @param isFurther whether it has got further than ever before: an attempt that starts over has not
 */
export async function saveProgress(
  db: Db,
  baseId: string,
  progress: Progress,
  isFurther = true,
): Promise<void> {
  await db`
    update bases set progress = ${jsonParameter(progress)}::text::jsonb,
      progress_at = case when ${isFurther}::boolean then now() else coalesce(progress_at, now()) end
    where id = ${baseId}`;
}

/** Records that people look at the progress of the base's first sync. Never fails: it is recorded when they look again. */
export async function recordWatched(
  { db, log }: Pick<Context, "db" | "log">,
  { id, progress, isWatched }: Pick<Base, "id" | "progress" | "isWatched">,
): Promise<void> {
  if (!progress || isWatched) return;
  try {
    await db`update bases set is_watched = true where id = ${id}`;
  } catch (error) {
    log.debug({ baseId: id, error }, "recording that the progress is shown failed");
  }
}

/** Returns the latest runs, the newest first. */
export async function listRuns(db: Db, baseId: string, limit: number): Promise<SyncRun[]> {
  return db<SyncRun[]>`
    select id, kind, syncs, started_at, completed_at, total_ms / syncs as duration_ms, longest_ms,
      seen, inserted, updated, deleted, requests, wait_ms, error_code, error_message
    from sync_runs where base_id = ${baseId} order by id desc limit ${limit}`;
}
