/** Reading the question for a plan, which is asked when a base is connected and when a workspace is changed. */
import { callsOfPlan, type Plan, plans } from "../../core/control/budgets";
import type { PlanForm } from "../../views/budget/plans";

export interface ReadPlan {
  errors: { plan?: string; calls?: string };
  /** Null when it is none, which `errors` says. */
  plan: Plan | null;
  /** Null: no cap. */
  callsPerMonth: number | null;
}

export function planOf(form: PlanForm): ReadPlan {
  const plan = plans.find((name) => name === form.plan) ?? null;
  if (plan === null) return { errors: { plan: "Choose one of these" }, plan, callsPerMonth: null };
  if (plan !== "custom") return { errors: {}, plan, callsPerMonth: callsOfPlan(plan) };
  const calls = readCount(form.calls);
  const errors = calls === null || calls < 1 ? { calls: "A whole number of at least 1, such as 50000" } : {};
  return { errors, plan, callsPerMonth: calls };
}

/** `50000`, and as people write it: `50,000`, `50 000`. Null for what is no number of calls. */
export function readCount(text: string): number | null {
  const isCount = /^(\d{1,9}|\d{1,3}([\s,.'’_]\d{3}){1,2})$/.test(text);
  return isCount ? Number(text.replace(/\D/g, "")) : null;
}
