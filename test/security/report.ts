/** Prints the effects of the attacks as one table, and compares them with the limits. */
import type { Attack, AttackResult } from "./attack";
import type { Window } from "./canary";
import { type CpuUse, formatCpu, ofService, together } from "./cpu";
import { type Control, isSlowed, type Latency, latencies, MAX_MORE_MS, MAX_RATIO } from "./latency";
import { FREEZE_MS } from "./service";

/** The allowed difference between the canary's budget and its calls. */
const MAX_BUDGET = 0.01;
/** The rounding of a hundredth of a few calls. */
const MAX_CALLS = 1;

export interface Row {
  attack: Pick<Attack, "name" | "finding" | "mayTakeLonger">;
  result: AttackResult;
  /** Quiet, and under attack, in turn. */
  pairs: { before: Window; during: Window; cpu: { before: CpuUse; during: CpuUse } }[];
  /** The duration of the attack. */
  seconds: number;
  /** The canary's calls in all windows, and those that its budget counted. */
  calls: number;
  counted: number;
  deaths: string[];
}

/** Everything in a row that exceeds a limit, as text. */
export function broken(row: Row, control: Control): string[] {
  const { result, deaths, pairs } = row;
  const { failed, failures, freezes } = underAttack(row);
  const wrong: string[] = [];
  if (result.succeeded > 0) wrong.push(`${result.succeeded} of ${result.attempted} attempts succeeded`);
  for (const latency of latencies(pairs)) {
    const { kind, from, to } = latency;
    if (isSlowed(latency, control) && !row.attack.mayTakeLonger?.includes(kind))
      wrong.push(
        `the canary's ${kind} took ${to.toFixed(1)} ms at p95, before ${from.toFixed(1)} ms: × ${ratioOf(latency)}`,
      );
  }
  const difference = budgetDifference(row);
  if (Math.abs(difference) > MAX_BUDGET && Math.abs(row.counted - row.calls) > MAX_CALLS)
    wrong.push(`the canary's budget differs by ${(difference * 100).toFixed(1)} %`);
  if (failed > 0) wrong.push(`${failed} of the canary's calls failed: ${failures.slice(0, 3).join("; ")}`);
  for (const [name, ms] of Object.entries(freezes))
    if (ms > FREEZE_MS) wrong.push(`${name} stood still for ${(ms / 1000).toFixed(1)} s`);
  return [...wrong, ...deaths.map((death) => death.split("\n")[0]!.slice(0, 160))];
}

/** Latencies above the limit for which docs/security.md promises none, as text: shown, and not counted as wrong. */
export function unlimited({ attack, pairs }: Row, control: Control): string[] {
  return latencies(pairs)
    .filter((latency) => attack.mayTakeLonger?.includes(latency.kind) && isSlowed(latency, control))
    .map(
      (latency) =>
        `the canary's ${latency.kind} took ${latency.to.toFixed(1)} ms at p95: × ${ratioOf(latency)}, and is not limited here`,
    );
}

/** All windows under attack as one, without the durations of calls. */
function underAttack({ pairs }: Row): Omit<Window, "samples" | "calls"> {
  const all = pairs.map(({ during }) => during);
  return {
    failures: all.flatMap(({ failures }) => failures),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    made: all.reduce((sum, { made }) => sum + made, 0),
    freezes: most(all.map(({ freezes }) => freezes)),
    memory: most(all.map(({ memory }) => memory)),
  };
}

function most(all: Record<string, number>[]): Record<string, number> {
  const highest: Record<string, number> = {};
  for (const one of all)
    for (const [name, value] of Object.entries(one)) highest[name] = Math.max(highest[name] ?? 0, value);
  return highest;
}

function budgetDifference({ calls, counted }: Row): number {
  return calls === 0 ? 0 : (counted - calls) / calls;
}

const HEADS = [
  "attack",
  "finding",
  "attempted",
  "a second",
  "refused",
  "succeeded",
  "p95 during/before",
  "of",
  "budget",
  "available",
  "service's CPU",
  "peak RSS",
  "freeze",
  "deaths",
];

/** Explains the table's columns and limits. @param control of the whole run */
export function legend(control: Control): string {
  const ratios = Object.entries(control).map(([kind, ratio]) => `${kind} ${ratio.toFixed(2)}`);
  return [
    "p95 during/before: the canary's slowest kind of call, in all windows under attack and in the quiet ones between them",
    "(eight of ten other choices of windows give a ratio between those in brackets).",
    `Too much: above ${MAX_RATIO} times that of (ordinary), in which a tenant works as usual, and more`,
    `than ${MAX_MORE_MS} ms. Worst of (ordinary): ${ratios.join(", ") || "too few calls"}. Budget: what it counts compared`,
    `with the calls made; too much: ${MAX_BUDGET * 100} % and more than ${MAX_CALLS} call. In (none) nothing is done.`,
    "*: no latency is promised for this kind of call during this attack (docs/security.md, Limitations), because a customer's",
    "SQL on the same server shares its processors: no limit was applied, and the figure is from fewer windows. It does not",
    "show that the attack is harmless to others.",
  ].join("\n");
}

export function table(rows: Row[]): string {
  const lines = [HEADS, ...rows.map(cells)];
  const widths = HEADS.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)));
  return lines.map((line) => line.map((cell, at) => cell.padEnd(widths[at]!)).join("  ")).join("\n");
}

function cells(row: Row): string[] {
  const { attack, result, pairs, deaths } = row;
  const during = underAttack(row);
  const worst = latencies(pairs).toSorted((one, other) => other.ratio - one.ratio)[0];
  const available = during.made === 0 ? 100 : (100 * (during.made - during.failed)) / during.made;
  const freeze = Math.max(0, ...Object.values(during.freezes));
  return [
    attack.name,
    attack.finding,
    String(result.attempted),
    row.seconds > 0 ? (result.attempted / row.seconds).toFixed(1) : "",
    String(result.attempted - result.succeeded),
    String(result.succeeded),
    worst ? `${ratioOf(worst)}, ${worst.to.toFixed(1)}/${worst.from.toFixed(1)} ms` : "too few calls",
    worst ? `${worst.kind}${attack.mayTakeLonger?.includes(worst.kind) ? "*" : ""}` : "",
    `${(budgetDifference(row) * 100).toFixed(1)} %`,
    `${available.toFixed(1)} %`,
    serviceCpu(row),
    memory(during.memory),
    `${(freeze / 1000).toFixed(2)} s`,
    String(deaths.length),
  ];
}

function ratioOf({ ratio, low, high }: Latency): string {
  return `${ratio.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`;
}

/** Of one core, in all windows. */
function serviceCpu({ pairs }: Row): string {
  const [before, during] = cpuOf(pairs).map((use) => `${(100 * ofService(use)).toFixed(0)}`);
  return `${before}→${during} %`;
}

function cpuOf(pairs: Row["pairs"]): [CpuUse, CpuUse] {
  return [together(pairs.map(({ cpu }) => cpu.before)), together(pairs.map(({ cpu }) => cpu.during))];
}

/** CPU of each part, before and during. */
export function cpuByPart({ pairs }: Row): string {
  return formatCpu(...cpuOf(pairs));
}

/** Of each role, MB. */
function memory(peaks: Record<string, number>): string {
  const roles = new Map<string, number>();
  for (const [name, bytes] of Object.entries(peaks)) {
    const role = name.split(" ")[0]!;
    roles.set(role, Math.max(roles.get(role) ?? 0, bytes));
  }
  return [...roles].map(([role, bytes]) => `${role} ${(bytes / 1024 ** 2).toFixed(0)}`).join(", ");
}
