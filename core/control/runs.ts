/** Sync runs: what each sync did, and what the base knows of its last one. */
import type { Db } from "../context";
import { type BasetideError, type ErrorCode, nextStep } from "../errors";
import type { BaseIssue, Progress, SyncKind, TableCount } from "./base-row";
import { cleanText, jsonText } from "./db";

/** Runs kept per base; the console draws from them. */
const KEPT_RUNS = 1000;
/** Old runs are cleared away once in so many. */
const PRUNE_EVERY = 50;
const MAX_ISSUES = 100;
const MAX_MESSAGE_LENGTH = 1000;

/** What a sync did, told when it ended. */
export interface RunReport {
  kind: SyncKind;
  startedAt: Date;
  /** Null when it failed. */
  completedAt: Date | null;
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
  /** Absent: as before. */
  tables?: TableCount[] | undefined;
  issueCount?: number | undefined;
  /** The first 100 are kept. */
  issues?: BaseIssue[] | undefined;
}

export interface SyncRun {
  id: string;
  kind: SyncKind;
  started_at: Date;
  completed_at: Date | null;
  duration_ms: number | null;
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
 * Keeps the run, and changes what the base says of its last sync, in one statement. A completed run makes the base
 * `active` and ends its error; one that needs a person makes it `needs_attention`. A base that was paused or marked
 * for deletion meanwhile stays so.
 */
export async function recordRun(db: Db, baseId: string, report: RunReport): Promise<void> {
  const isCompleted = report.completedAt !== null;
  const durationMs = isCompleted ? report.completedAt!.getTime() - report.startedAt.getTime() : null;
  const error = isCompleted ? undefined : (report.error ?? { code: "internal", message: "The sync failed" });
  const message = error ? cleanText(error.message).slice(0, MAX_MESSAGE_LENGTH) : null;
  const needsAttention = error !== undefined && nextStep[error.code] === "needs_attention";
  const tables = report.tables ? jsonText(report.tables) : null;
  const issues = report.issues ? jsonText(report.issues.slice(0, MAX_ISSUES)) : null;
  const [run] = await db<{ id: string }[]>`
    with updated as (
      update bases set
        state = case
          when state in ('paused', 'deleting') then state
          when ${isCompleted}::boolean then 'active'
          when ${needsAttention}::boolean then 'needs_attention'
          else state
        end,
        attempted_at = now(),
        sync_kind = case when ${isCompleted}::boolean then ${report.kind} else sync_kind end,
        sync_started_at = case when ${isCompleted}::boolean then ${report.startedAt} else sync_started_at end,
        sync_completed_at = coalesce(${report.completedAt}, sync_completed_at),
        sync_duration_ms = coalesce(${durationMs}, sync_duration_ms),
        error_code = ${error?.code ?? null},
        error_message = ${message},
        error_since = case when ${isCompleted}::boolean then null else coalesce(error_since, now()) end,
        resync_requested_at = case
          when ${isCompleted}::boolean and resync_requested_at <= ${report.startedAt} then null
          else resync_requested_at
        end,
        progress = case when ${isCompleted}::boolean then null else progress end,
        tables = coalesce(${tables}::text::jsonb, tables),
        issue_count = coalesce(${report.issueCount ?? null}, issue_count),
        issues = coalesce(${issues}::text::jsonb, issues)
      where id = ${baseId}
      returning id
    )
    insert into sync_runs (base_id, kind, started_at, completed_at, seen, inserted, updated, deleted, requests,
      wait_ms, error_code, error_message)
    select id, ${report.kind}, ${report.startedAt}, ${report.completedAt}, ${report.seen}, ${report.inserted},
      ${report.updated}, ${report.deleted}, ${report.requests}, ${report.waitMs}, ${error?.code ?? null}, ${message}
    from updated
    returning id`;
  if (run && Number(run.id) % PRUNE_EVERY === 0) await pruneRuns(db, baseId);
}

/** Says how far the running first sync or rebuild is; `recordRun` of a completed one clears it. */
export async function saveProgress(db: Db, baseId: string, progress: Progress): Promise<void> {
  await db`update bases set progress = ${jsonText(progress)}::text::jsonb where id = ${baseId}`;
}

/** The latest runs, the newest first. */
export async function listRuns(db: Db, baseId: string, limit: number): Promise<SyncRun[]> {
  return db<SyncRun[]>`
    select id, kind, started_at, completed_at,
      extract(epoch from completed_at - started_at)::float8 * 1000 as duration_ms,
      seen, inserted, updated, deleted, requests, wait_ms, error_code, error_message
    from sync_runs where base_id = ${baseId} order by id desc limit ${limit}`;
}

async function pruneRuns(db: Db, baseId: string): Promise<void> {
  await db`
    delete from sync_runs where base_id = ${baseId} and id <= (
      select id from sync_runs where base_id = ${baseId} order by id desc offset ${KEPT_RUNS} limit 1)`;
}
