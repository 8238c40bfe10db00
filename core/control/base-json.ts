/** A base as the management API and the operator's command line show it. */
import type { Base } from "./base-row";
import { indicatorOf } from "./indicator";
import { nextMonth } from "./next-month";

export function toBaseJson(base: Base, now: Date) {
  const { sync, sweep, error, progress } = base;
  return {
    id: base.id,
    platform: base.platform,
    base_id: base.sourceBaseId,
    name: base.name,
    state: base.state,
    indicator: indicatorOf(base, now),
    settings: {
      turbo: base.settings.turbo,
      rapid: base.settings.rapid,
      linked_records_as_text: base.settings.linkedRecordsAsText,
      lookups_as_text: base.settings.lookupsAsText,
      paused: base.settings.paused,
    },
    database: base.database,
    tables: base.tables,
    sync: {
      kind: sync?.kind ?? progress?.kind ?? null,
      started_at: sync?.startedAt.toISOString() ?? progress?.started_at ?? null,
      completed_at: sync?.completedAt.toISOString() ?? null,
      duration_ms: sync?.durationMs ?? null,
      // The replica is complete as of the start of the last sync that completed; before one, nobody knows.
      lag_ms: sync ? Math.max(0, now.getTime() - sync.startedAt.getTime()) : null,
      progress,
    },
    // Rows are as of then in every respect; in rapid mode `sync` knows nothing of deletes and computed fields.
    sweep: sweep && {
      started_at: sweep.startedAt.toISOString(),
      completed_at: sweep.completedAt.toISOString(),
    },
    error: error && {
      code: error.code,
      message: error.message,
      since: error.since.toISOString(),
      until: error.code === "source_billing_limit" ? nextMonth(now).toISOString() : null,
    },
    issues: base.issues,
    issue_count: base.issueCount,
    repairs: base.repairs,
  };
}
