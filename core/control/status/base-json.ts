/** A base as JSON, for the management API and the operator's command line. */
import type { Db } from "../../context";
import { serverNow } from "../../postgres";
import { type Base, EVERYTHING, type LiveState, selectionJson, settingsJson } from "../bases";
import { type Budget, budgetsOf, nextMonth, toBudgetJson } from "../budgets";
import { indicatorOf } from "./indicator";
import { statusOf } from "./status";

/** Errors that end when the next month begins. */
const MONTHLY: ReadonlySet<string> = new Set(["source_billing_limit", "budget_spent"]);

/** Bases with their current budgets. */
export async function baseJsons(db: Db, bases: Base[]) {
  const now = bases[0] ? serverNow(bases[0]) : new Date();
  const workspaceIds = new Set(bases.flatMap((base) => base.workspaceId ?? []));
  const budgets = await budgetsOf(db, [...workspaceIds], now);
  return bases.map((base) =>
    toBaseJson(base, now, base.workspaceId === null ? null : (budgets.get(base.workspaceId) ?? null)),
  );
}

export async function baseJson(db: Db, base: Base) {
  const [json] = await baseJsons(db, [base]);
  return json!;
}

export function toBaseJson(base: Base, now: Date, budget: Budget | null = null) {
  const { sync, sweep, error, progress } = base;
  return {
    id: base.id,
    platform: base.platform,
    base_id: base.sourceBaseId,
    name: base.name,
    state: base.state,
    indicator: indicatorJson(base, now),
    settings: settingsJson(base.settings),
    selection: selectionJson(base.selection ?? EVERYTHING),
    database: base.database,
    tables: base.tables,
    sync: {
      kind: sync?.kind ?? progress?.kind ?? null,
      started_at: sync?.startedAt.toISOString() ?? progress?.started_at ?? null,
      completed_at: sync?.completedAt.toISOString() ?? null,
      duration_ms: sync?.durationMs ?? null,
      // The replica is complete as of the start of the last completed sync; before the first one, this is unknown.
      lag_ms: sync ? Math.max(0, now.getTime() - sync.startedAt.getTime()) : null,
      progress,
    },
    // Rows are complete as of then; in rapid mode `sync` does not cover deletions and computed fields.
    sweep: sweep && {
      started_at: sweep.startedAt.toISOString(),
      completed_at: sweep.completedAt.toISOString(),
    },
    live: base.live && toLiveJson(base.live),
    budget: budget && toBudgetJson(budget),
    problems: base.problems.map(({ kind, tableId, name, message, since, nextAt }) => ({
      kind,
      table_id: tableId,
      name,
      message,
      since: since.toISOString(),
      next_try_at: nextAt?.toISOString() ?? null,
    })),
    error: error && {
      code: error.code,
      message: error.message,
      since: error.since.toISOString(),
      until: MONTHLY.has(error.code) ? nextMonth(now).toISOString() : null,
    },
    failing_tables: base.failingTables,
    schema_error: base.schemaError,
    issues: base.issues,
    issue_count: base.issueCount,
    open_issue_count: base.openIssueCount,
    repairs: base.repairs,
  };
}

function indicatorJson(base: Base, now: Date) {
  const { color, reason, since = null, tables = [] } = indicatorOf(base, now);
  const { nextAt, next } = statusOf(base, now);
  return {
    color,
    reason,
    since: since?.toISOString() ?? null,
    tables,
    next,
    next_at: nextAt?.toISOString() ?? null,
  };
}

function toLiveJson(live: LiveState) {
  return {
    state: live.state,
    reason: live.reason,
    by: live.by,
    last_change_at: live.changedAt?.toISOString() ?? null,
    read_at: live.readAt?.toISOString() ?? null,
    due_at: live.dueAt?.toISOString() ?? null,
    waiting: live.waiting,
    waiting_since: live.waitingSince?.toISOString() ?? null,
    missed: live.missed,
    missed_at: live.missedAt?.toISOString() ?? null,
    compared_at: live.comparedAt?.toISOString() ?? null,
    drifted_since: live.driftedSince?.toISOString() ?? null,
    gap_since: live.gapSince?.toISOString() ?? null,
    off_since: live.offSince?.toISOString() ?? null,
    retry_at: live.retryAt?.toISOString() ?? null,
    expires_at: live.expiresAt?.toISOString() ?? null,
  };
}
