/** The dashboard and the alert rules compared with the existing metrics. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { documentedMetrics } from "../support/metrics";
import { repoRoot } from "../support/source-files";

const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");
const sources = ["apps", "core"].flatMap((folder) =>
  (readdirSync(join(repoRoot, folder), { recursive: true }) as string[])
    .filter((path) => path.endsWith(".ts"))
    .map((path) => read(join(folder, path))),
);
/** The existing metrics; `test/integration/fleet/metrics.test.ts` tests that the processes serve exactly these. */
const metrics = new Map(documentedMetrics().map((metric) => [metric.name, metric]));

interface Panel {
  id: number;
  title: string;
  type: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
  datasource?: { uid: string };
}

const dashboard = JSON.parse(read("docs/monitoring/grafana/basetide.json")) as {
  uid: string;
  panels: Panel[];
};
const { groups } = parse(read("docs/monitoring/alerts.yml")) as {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string; runbook: string } }[] }[];
};
const rules = groups.flatMap((group) => group.rules);

/** Metrics and labels in an expression that do not exist. */
function unknownIn(expression: string): string[] {
  const names = [...expression.matchAll(/basetide_[a-z_]+/g)].map(([name]) => name);
  const nameOf = (name: string) => (metrics.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ""));
  const used = names.map(nameOf);
  const known = new Set([
    "le",
    "job",
    "instance",
    "role",
    ...used.flatMap((name) => metrics.get(name)?.labels ?? []),
  ]);
  const grouped = [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, labels]) => labels!.split(", "));
  const matched = [...expression.matchAll(/(\w+)(?==~?"|!=")/g)].map(([label]) => label);
  return [
    ...used.filter((name) => !metrics.has(name)),
    ...[...grouped, ...matched].filter((label) => !known.has(label)),
  ];
}

describe("the dashboard", () => {
  const panels = dashboard.panels.filter((panel) => panel.type !== "row");

  test("shows existing metrics", () => {
    expect(panels.length).toBeGreaterThan(15);
    const expressions = panels.flatMap((panel) => panel.targets!.map((target) => target.expr));
    expect(expressions.flatMap(unknownIn)).toEqual([]);
  });

  test("shows each of ours, except those for alert rules and single processes", () => {
    const shown = JSON.stringify(dashboard);
    const hidden = [...metrics.keys()].filter((name) => !shown.includes(name));
    expect(hidden).toEqual([
      "basetide_worker_share",
      "basetide_watchdog_ended_total",
      "basetide_watchdog_paused_total",
      "basetide_worker_bases_given_up_total",
      "basetide_worker_fingerprint_bytes",
      "basetide_worker_fingerprints_evicted_total",
      "basetide_gateway_restarts_total",
      "basetide_gateway_violations_total",
      "basetide_quota_fallback",
      "basetide_fleet_quarantined",
    ]);
  });

  test("reads from the data source that is provisioned", () => {
    const { datasources } = parse(read("docs/monitoring/grafana/provisioning/datasources/prometheus.yml"));
    expect(new Set(panels.map((panel) => panel.datasource!.uid))).toEqual(new Set([datasources[0].uid]));
  });

  test("has panels with unique ids that do not overlap", () => {
    expect(new Set(dashboard.panels.map((panel) => panel.id)).size).toBe(dashboard.panels.length);
    for (const one of dashboard.panels) {
      const { x, y, w, h } = one.gridPos;
      const over = dashboard.panels.filter(({ id, gridPos: other }) => {
        const isBackground =
          other.x >= x + w || x >= other.x + other.w || other.y >= y + h || y >= other.y + other.h;
        return id !== one.id && !isBackground;
      });
      expect(over, one.title).toEqual([]);
    }
  });
});

describe("the alert rules", () => {
  test.each(rules)("$alert uses existing metrics, and has a section of the runbook", (rule) => {
    expect(unknownIn(rule.expr)).toEqual([]);
    expect(rule.annotations.summary.length).toBeGreaterThan(10);
    const [page, anchor] = rule.annotations.runbook.split("#");
    expect(anchor).toBe(rule.alert.toLowerCase());
    expect(read(page!)).toMatch(new RegExp(`^## ${rule.alert}$`, "m"));
  });
});

test("no metric of ours has a label that names a base, a table or a customer", () => {
  const labels = sources.flatMap((text) =>
    [...text.matchAll(/labelNames: \[([^\]]*)\]/g)].flatMap(([, names = ""]) => names.match(/\w+/g) ?? []),
  );
  expect(labels.length).toBeGreaterThan(5);
  expect(labels.filter((name) => /base|table|account|customer|workspace/i.test(name))).toEqual([]);
});
