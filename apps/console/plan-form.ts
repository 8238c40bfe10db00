/** Reads the question about the plan, which is asked when a base is connected and when a workspace is changed. */
import { callsOfPlan, type Plan, plans } from "../../core/control/budgets";
import type { PlanForm } from "../../views/budget/plans";

interface ReadPlan {
  errors: { plan?: string; calls?: string };
  /** Null if the input is not a plan; `errors` has the message. */
  plan: Plan | null;
  /** Null: no cap. */
  callsPerMonth: number | null;
}

export function planOf(form: PlanForm): ReadPlan {
  const plan = plans.find((name) => name === form.plan) ?? null;
  if (plan === null) return { errors: { plan: "Choose one of these options" }, plan, callsPerMonth: null };
  if (plan !== "custom") return { errors: {}, plan, callsPerMonth: callsOfPlan(plan) };
  const calls = readCount(form.calls);
  const errors =
    calls === null || calls < 1 ? { calls: "Enter a whole number of at least 1, such as 50000" } : {};
  return { errors, plan, callsPerMonth: calls };
}

/** Reads `50000`, and the spellings `50,000` and `50 000`. Returns null if the text is not a number of calls. */
export function readCount(text: string): number | null {
  const isCount = /^(\d{1,9}|\d{1,3}([\s,.'’_]\d{3}){1,2})$/.test(text);
  return isCount ? Number(text.replace(/\D/g, "")) : null;
}
