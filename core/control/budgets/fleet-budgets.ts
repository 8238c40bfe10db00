/** Call budgets of all workspaces together, for metrics; no label names a workspace. */
import type { Db } from "../../context";
import { type Budget, budgetsOf } from "./budgets";

/** `forecast`: sync has calls left, but the month will end above the cap. */
const states = ["no_cap", "inside", "forecast", "spent", "over"] as const;

export interface FleetBudgets {
  /** Number of workspaces with bases, by state; contains every state. */
  workspaces: Record<string, number>;
  /** The largest used share of a cap; null if no workspace has a cap. */
  usedRatio: number | null;
  /** This month's calls (UTC) of all bases, including deleted ones and those without a workspace; up to 10 s old. */
  calls: { sync: number; client: number };
}

export async function readFleetBudgets(db: Db): Promise<FleetBudgets> {
  const [rows, calls] = await Promise.all([
    db<{ id: string }[]>`
      select id from workspaces as w where exists (select from bases where workspace_id = w.id)`,
    callsOfMonth(db),
  ]);
  const budgets = await budgetsOf(
    db,
    rows.map(({ id }) => id),
  );
  const workspaces: Record<string, number> = Object.fromEntries(states.map((state) => [state, 0]));
  let usedRatio: number | null = null;
  for (const budget of budgets.values()) {
    workspaces[stateOf(budget)]!++;
    const { callsPerMonth, used } = budget;
    if (callsPerMonth) usedRatio = Math.max(usedRatio ?? 0, (used.sync + used.client) / callsPerMonth);
  }
  return { workspaces, usedRatio, calls };
}

function stateOf({ state, forecast }: Budget): (typeof states)[number] {
  return state === "inside" && forecast.endsInside === false ? "forecast" : state;
}

async function callsOfMonth(db: Db): Promise<FleetBudgets["calls"]> {
  const [row] = await db<FleetBudgets["calls"][]>`
    select coalesce(sum(sync), 0)::float8 as sync, coalesce(sum(client), 0)::float8 as client
    from quota_calls where month = date_trunc('month', now() at time zone 'UTC')::date`;
  return row!;
}
