/** What each plan or workspace would mean for a base that is being connected: its calls, by the pace of a real sync. */
import {
  type Budget,
  defaultReserve,
  quotaKeyOf,
  sourcePlans,
  type Workspace,
} from "../../core/control/budgets";
import type { Draft } from "../../core/control/onboarding";
import { syncShare } from "../../core/limiter";
import { notificationAddress } from "../../core/sync/modes/live";
import { estimateCalls } from "../../core/sync/pacing";
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
    isExact: size.isExact,
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
