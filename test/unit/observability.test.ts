/** The dashboard and the alert rules against the metrics that the code has. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { repoRoot } from "../support/source-files";

const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");
const sources = ["apps", "core"].flatMap((folder) =>
  (readdirSync(join(repoRoot, folder), { recursive: true }) as string[])
    .filter((path) => path.endsWith(".ts"))
    .map((path) => read(join(folder, path))),
);
/** By name, as they are registered; a name with a variable in it stands for whatever follows. */
const metrics = new Set(
  sources.flatMap((text) => [...text.matchAll(/basetide_[a-z_]+/g)].map(([name]) => name)),
);

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

function unknownMetrics(expression: string): string[] {
  const used = [...expression.matchAll(/basetide_[a-z_]+/g)].map(([name]) => name);
  const isKnown = (name: string) =>
    metrics.has(name) ||
    metrics.has(name.replace(/_(bucket|count|sum)$/, "")) ||
    (name.startsWith("basetide_fleet_") && sources.some((text) => text.includes(`"${name.slice(15)}"`)));
  return used.filter((name) => !isKnown(name));
}

describe("the dashboard", () => {
  const panels = dashboard.panels.filter((panel) => panel.type !== "row");

  test("shows metrics that there are", () => {
    expect(panels.length).toBeGreaterThan(15);
    const expressions = panels.flatMap((panel) => panel.targets!.map((target) => target.expr));
    expect(expressions.flatMap(unknownMetrics)).toEqual([]);
  });

  test("reads from the data source that is provisioned", () => {
    const { datasources } = parse(read("docs/monitoring/grafana/provisioning/datasources/prometheus.yml"));
    expect(new Set(panels.map((panel) => panel.datasource!.uid))).toEqual(new Set([datasources[0].uid]));
  });

  test("has panels of their own id that do not overlap", () => {
    expect(new Set(dashboard.panels.map((panel) => panel.id)).size).toBe(dashboard.panels.length);
    for (const one of dashboard.panels) {
      const { x, y, w, h } = one.gridPos;
      const over = dashboard.panels.filter(({ id, gridPos: other }) => {
        const isBeside =
          other.x >= x + w || x >= other.x + other.w || other.y >= y + h || y >= other.y + other.h;
        return id !== one.id && !isBeside;
      });
      expect(over, one.title).toEqual([]);
    }
  });
});

describe("the alert rules", () => {
  test.each(rules)("$alert watches metrics that there are, and has a section of the runbook", (rule) => {
    expect(unknownMetrics(rule.expr)).toEqual([]);
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
