/** How often a base without a feed is swept, or looked at in rapid mode, as its budget is now. */

import type { Base } from "../../control/bases";
import { agoMs } from "../../postgres";
import type { LeasedBudget } from "../pacing";
import { type Cadence, cadenceOf, sweepCallsOf } from "../pacing";
import type { BaseCache } from "../state";

/** A small base is not swept more often than this. */
export const MIN_SYNC_INTERVAL_MS = 1000;

/** How often what is asked for, as the budget is now. */
export function cadenceFor(budget: LeasedBudget, base: Base, mode: "rapid" | "sweep"): Cadence {
  return cadenceOf({
    mode,
    ratePerSecond: budget.ratePerSecond,
    hasNotifications: false,
    isActive: true,
    sweepCalls: sweepCallsOf(base.tables),
    tables: base.tables.length,
    changesByItself: true,
  });
}

/**
 * Until the budget lets the next sweep begin, ms. A first sync, one that failed, one of a replica that may have lost
 * commits, or a look asked for, waits for none.
 */
export function restOf(
  budget: LeasedBudget,
  base: Base,
  { schemaCheckRequestedAt, scanStartedAt }: Pick<BaseCache, "schemaCheckRequestedAt" | "scanStartedAt">,
): number {
  if (!base.sweep || base.error || budget.spentUntil || schemaCheckRequestedAt) return 0;
  if (scanStartedAt === Number.NEGATIVE_INFINITY) return 0;
  const { sweepEveryMs } = cadenceFor(budget, base, "sweep");
  // Without a cap the pace is kept by the loop.
  if (sweepEveryMs <= MIN_SYNC_INTERVAL_MS) return 0;
  return Math.max(0, sweepEveryMs - agoMs(base, base.sweep.startedAt));
}
