/** Reads metrics as `docs/metrics.md` describes them, and as a process serves them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repoRoot } from "./source-files";

export interface DocumentedMetric {
  name: string;
  type: string;
  labels: string[];
  /** Roles of the processes that serve it. */
  of: string[];
}

/** The rows of its tables. */
export function documentedMetrics(): DocumentedMetric[] {
  const text = readFileSync(join(repoRoot, "docs/metrics.md"), "utf8");
  return text.split("\n").flatMap((line) => {
    const [, name, type, labels, of] = line.split("|").map((cell) => cell.trim());
    if (!name?.startsWith("`basetide_")) return [];
    const named = labels!.match(/\w+/g) ?? [];
    return [{ name: name.replaceAll("`", ""), type: type!, labels: named, of: of!.split(", ") }];
  });
}

export interface Sample {
  /** Includes `_bucket`, `_sum` or `_count` for a histogram. */
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface MetricsPage {
  /** Types of our own metrics by name, including those without a value yet. */
  types: Map<string, string>;
  samples: Sample[];
  /** The sum of the samples with these labels, or undefined if there are none. */
  sum(name: string, labels?: Record<string, string>): number | undefined;
}

/** Reads the metrics of the process on this port. */
export async function readMetrics(port: number): Promise<MetricsPage> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  const lines = (await answer.text()).split("\n");
  const types = lines.flatMap((line) => {
    const [, name, type] = /^# TYPE (basetide_\w+) (\w+)$/.exec(line) ?? [];
    return name ? [[name, type!] as const] : [];
  });
  const samples = lines.flatMap((line) => {
    const [, name, labels, value] = /^(basetide_\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    return name ? [{ name, labels: labelsOf(labels ?? ""), value: Number(value) }] : [];
  });
  return {
    types: new Map(types),
    samples,
    sum(name, labels = {}) {
      const wanted = Object.entries(labels);
      const found = samples.filter(
        (one) => one.name === name && wanted.every(([label, value]) => one.labels[label] === value),
      );
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}
