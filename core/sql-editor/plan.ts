/** Reads a plan, as `explain (format json)` returns it, for people: what each step does, and its share of the whole. */
import type { StatementResult } from "./run";

export interface PlanNode {
  /** Such as "Hash Join" or "Seq Scan on orders". */
  title: string;
  /** Conditions and keys, as names and texts. */
  details: [name: string, text: string][];
  /** Estimated, or counted by `analyze`: of all repetitions. */
  rows: number;
  /** Estimated rows, if they were counted. */
  estimatedRows: number | undefined;
  /** Of this step and those below it, over all repetitions; undefined without `analyze`. */
  ms: number | undefined;
  cost: number;
  /** Of this step alone, in the time or else the cost of the whole, from 0 to 1. */
  share: number;
  children: PlanNode[];
}

interface RawPlan {
  "Node Type": string;
  "Total Cost"?: number;
  "Plan Rows"?: number;
  "Actual Rows"?: number;
  "Actual Loops"?: number;
  "Actual Total Time"?: number;
  Plans?: RawPlan[];
  [fact: string]: unknown;
}

const DETAILS = [
  ...[
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "Join Filter",
    "Filter",
    "Rows Removed by Filter",
  ],
  ...["Group Key", "Sort Key", "Sort Method", "Function Call", "Output"],
];

/** The plan in a result; undefined if it has none of this form. */
export function queryPlanOf({ columns, rows }: StatementResult): PlanNode | undefined {
  if (columns.length !== 1 || columns[0]!.type !== "json" || columns[0]!.name !== "QUERY PLAN")
    return undefined;
  const [whole] = [JSON.parse(rows[0]?.[0] ?? "null")].flat() as ({ Plan?: RawPlan } | null)[];
  return whole?.Plan && nodeOf(whole.Plan, weightOf(whole.Plan));
}

function nodeOf(plan: RawPlan, whole: number): PlanNode {
  const loops = plan["Actual Loops"] ?? 1;
  const below = (plan.Plans ?? []).reduce((sum, child) => sum + weightOf(child), 0);
  const estimated = plan["Plan Rows"] ?? 0;
  const counted = plan["Actual Rows"];
  return {
    title: titleOf(plan),
    details: DETAILS.filter((name) => plan[name] !== undefined).map((name) => [
      name,
      String([plan[name]].flat().join(", ")),
    ]),
    rows: counted === undefined ? estimated : Math.round(counted * loops),
    estimatedRows: counted === undefined ? undefined : estimated * Math.max(1, loops),
    ms: plan["Actual Total Time"] === undefined ? undefined : plan["Actual Total Time"] * loops,
    cost: plan["Total Cost"] ?? 0,
    share: whole > 0 ? Math.max(0, weightOf(plan) - below) / whole : 0,
    children: (plan.Plans ?? []).map((child) => nodeOf(child, whole)),
  };
}

function weightOf(plan: RawPlan): number {
  const time = plan["Actual Total Time"];
  return time === undefined ? (plan["Total Cost"] ?? 0) : time * (plan["Actual Loops"] ?? 1);
}

function titleOf(plan: RawPlan): string {
  const {
    "Node Type": type,
    "Join Type": join,
    "Relation Name": relation,
    "Index Name": index,
    Alias: alias,
  } = plan;
  const kind = join && join !== "Inner" ? `${type} (${join})` : type;
  const by = index ? ` by ${index}` : "";
  const on = relation ?? plan["CTE Name"] ?? plan["Function Name"];
  const named = alias && alias !== on ? ` as ${alias}` : "";
  return `${kind}${by}${on ? ` on ${on}${named}` : ""}`;
}
