/** What the worker's metrics say of syncs. No label names a base. */
import { Counter, Histogram, type Registry } from "prom-client";
import type { RunReport } from "../control";

export interface SyncMetrics {
  /** Counts a sync that has ended. */
  observe(report: RunReport): void;
  /** Counts records that the feed of live mode told nothing of: found by a sweep, or by a comparison with the source. */
  untold(foundBy: "sweep" | "comparison", count: number): void;
}

/** Registers the metrics; once per registry. */
export function syncMetrics(registry: Registry): SyncMetrics {
  const registers = [registry];
  const syncs = new Counter({
    name: "basetide_syncs_total",
    help: "Syncs that ended, by kind (first, rebuild, sweep, rapid, live) and outcome (completed, or the error's code)",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const rows = new Counter({
    name: "basetide_sync_rows_total",
    help: "Rows that syncs wrote, by change (inserted, updated, deleted)",
    labelNames: ["change"],
    registers,
  });
  const records = new Counter({
    name: "basetide_sync_records_total",
    help: "Records that syncs read",
    registers,
  });
  const requests = new Counter({
    name: "basetide_sync_requests_total",
    help: "Requests that syncs made to sources",
    registers,
  });
  const duration = new Histogram({
    name: "basetide_sync_duration_seconds",
    help: "Duration of completed syncs, which is the replica's greatest lag",
    labelNames: ["kind"],
    buckets: [0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280],
    registers,
  });
  const missed = new Counter({
    name: "basetide_live_missed_records_total",
    help: "Records that a sweep found changed and the source's feed never told of",
    registers,
  });
  const stale = new Counter({
    name: "basetide_live_stale_records_total",
    help: "Records that a comparison with the source found stale, of which its feed told nothing",
    registers,
  });
  return {
    untold: (foundBy, count) => (foundBy === "sweep" ? missed : stale).inc(count),
    observe(report) {
      syncs.inc({ kind: report.kind, outcome: report.error?.code ?? "completed" });
      rows.inc({ change: "inserted" }, report.inserted);
      rows.inc({ change: "updated" }, report.updated);
      rows.inc({ change: "deleted" }, report.deleted);
      records.inc(report.seen);
      requests.inc(report.requests);
      if (report.completedAt) {
        duration.observe(
          { kind: report.kind },
          (report.completedAt.getTime() - report.startedAt.getTime()) / 1000,
        );
      }
    },
  };
}
