/**
 * The question about the plan, which is asked when a base is connected and when a workspace is changed: what each answer
 * would mean for a base (its calls, by the pace of a real sync), and reading the answer.
 */
import {
  type Budget,
  callsOfPlan,
  defaultReserve,
  estimateCalls,
  type Plan,
  plans,
  quotaKeyOf,
  sourcePlans,
  type Workspace,
} from "../../core/control/budgets";
import type { Draft } from "../../core/control/onboarding";
import { syncShare } from "../../core/limiter";
import { notificationAddress } from "../../core/sync/modes/live";
import type { PlanForm } from "../../views/budget/plans";
import type { PlanCosts } from "../../views/onboarding/plan-cost";
import type { ConsoleContext } from "./page-kit";

/** Returns the costs by the value of each choice; empty if the size of the base is unknown. */
export async function planCosts(
  { config }: Pick<ConsoleContext, "config">,
  { platform, sourceBase, size, reportsChanges }: Draft,
  workspaces: { workspace: Workspace; budget: Budget }[],
  now = new Date(),
): Promise<PlanCosts> {
  if (!size || !sourceBase) return new Map();
  const quotaKey = quotaKeyOf({ platform, sourceBaseId: sourceBase.id });
  const { url } = await notificationAddress(config, { id: "", platform });
  const facts = {
    tables: size.tables,
    sweepCalls: size.calls,
    isLive: reportsChanges !== false,
    hasNotifications: url !== null,
    share: syncShare(quotaKey, false),
    schemaPollMs: config.schemaPollMs,
    now,
  };
  const cost = (
    callsPerMonth: number | null,
    reserve: number,
    used = { sync: 0, client: 0 },
    otherBases = 0,
  ) => ({
    callsPerMonth,
    isKnown: size.isKnown,
    ...estimateCalls({ ...facts, cap: { callsPerMonth, reserve }, used, otherBases }),
  });
  return new Map([
    ...sourcePlans.map(
      ({ id, callsPerMonth }) => [id as string, cost(callsPerMonth, defaultReserve(callsPerMonth))] as const,
    ),
    ...workspaces.map(
      ({ workspace, budget }) =>
        [
          workspace.id,
          cost(budget.callsPerMonth, budget.reserve, budget.used, workspace.baseIds.length),
        ] as const,
    ),
  ]);
}

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
