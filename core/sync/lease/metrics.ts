/** Metrics of a worker's syncs. No label identifies a base. */
import { Counter, Histogram, type Registry } from "prom-client";
import { BufferedCounter } from "../../buffered-metrics";
import type { AskKind } from "../engine";
import type { RunReport } from "../host";

export interface SyncMetrics {
  /**
   * Counts a sync that has ended.
   *
   * @param syncedFrom when the previous sync began; null if there was none, or if live mode has reported changes since
   */
  observe(report: RunReport, syncedFrom: Date | null): void;
  /** Counts a request to the source. */
  requested(kind: AskKind): void;
  /** Counts images that lost to one applied after their read version: their records are read or compared again. */
  lost(images: number): void;
  /**
   * Counts records that the feed of live mode did not report: found by a sweep, or by a comparison with the source.
   */
  unreported(foundBy: "sweep" | "comparison", count: number): void;
}

/** A batch of live mode takes a second; a base with a small budget is swept once a day. */
const LAG_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 86_400];

/** Registers the metrics; call once per registry. */
export function syncMetrics(registry: Registry): SyncMetrics {
  const registers = [registry];
  const syncs = new Counter({
    name: "basetide_syncs_total",
    help: "Finished syncs, by kind (first, rebuild, sweep, rapid, live) and outcome (completed, or the error's code)",
    labelNames: ["kind", "outcome"],
    registers,
  });
  const rows = new Counter({
    name: "basetide_sync_rows_total",
    help: "Rows that syncs have written, by change (inserted, updated, deleted)",
    labelNames: ["change"],
    registers,
  });
  const records = new Counter({
    name: "basetide_sync_records_total",
    help: "Records that syncs have read",
    registers,
  });
  const requests = new BufferedCounter({
    name: "basetide_sync_requests_total",
    help: "Requests of syncs to Airtable, by purpose (sweep: a page of a table)",
    label: "kind",
    registers,
  });
  const duration = new Histogram({
    name: "basetide_sync_duration_seconds",
    help: "Duration of completed syncs",
    labelNames: ["kind"],
    buckets: [0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280],
    registers,
  });
  const lag = new Histogram({
    name: "basetide_sync_lag_seconds",
    help: "Maximum age of the changes that a sync applied, at its completion: time since the previous sync started (live: since the feed was requested)",
    labelNames: ["kind"],
    buckets: LAG_SECONDS,
    registers,
  });
  const lost = new Counter({
    name: "basetide_sync_lost_row_images_total",
    help: "Row images of syncs that were superseded by a newer image, so that their records are read or compared again",
    registers,
  });
  const missed = new Counter({
    name: "basetide_live_missed_records_total",
    help: "Changed records that a sweep found and Airtable's feed never reported",
    registers,
  });
  const stale = new Counter({
    name: "basetide_live_drifted_records_total",
    help: "Stale records that a comparison with Airtable found and its feed did not report",
    registers,
  });
  return {
    unreported: (foundBy, count) => (foundBy === "sweep" ? missed : stale).inc(count),
    requested: (kind) => requests.count(kind),
    lost: (images) => lost.inc(images),
    observe(report, syncedFrom) {
      syncs.inc({ kind: report.kind, outcome: report.error?.code ?? "completed" });
      rows.inc({ change: "inserted" }, report.inserted);
      rows.inc({ change: "updated" }, report.updated);
      rows.inc({ change: "deleted" }, report.deleted);
      records.inc(report.seen);
      const { kind, startedAt, completedAt, isBackground } = report;
      if (!completedAt) return;
      duration.observe({ kind }, (completedAt.getTime() - startedAt.getTime()) / 1000);
      const changesSince = kind === "live" ? startedAt : syncedFrom;
      if (changesSince && !isBackground)
        lag.observe({ kind }, (completedAt.getTime() - changesSince.getTime()) / 1000);
    },
  };
}
