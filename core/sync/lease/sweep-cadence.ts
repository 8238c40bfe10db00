/** How often a base without a feed is swept, or polled in rapid mode, within its current budget. */

import { agoMs } from "../../postgres";
import type { SyncedBase } from "../host";
import type { LeasedBudget } from "../pacing";
import { type Cadence, cadenceOf, SHORTEST_MS, sweepCallsOf, TICK_MS } from "../pacing";
import type { BaseCache } from "../state";

/**
 * Sweeps of small bases begin at multiples of TICK_MS, so that those of many bases begin together: a worker that wakes up
 * for one base at a time finds cold caches each time, and spends a sixth more CPU on each request.
 *
 * Returns when the sweep after one that began at `startedAt` may begin, both by performance.now(): the beat that is
 * nearest to the shortest interval, so that sweeps on beats keep that interval.
 */
export function nextSweepAt(startedAt: number): number {
  return Math.round((startedAt + SHORTEST_MS) / TICK_MS) * TICK_MS;
}

/** Returns the cadence that the current budget allows. */
export function cadenceFor(budget: LeasedBudget, base: SyncedBase, mode: "rapid" | "sweep"): Cadence {
  return cadenceOf({
    mode,
    ratePerSecond: budget.ratePerSecond,
    notifications: "none",
    isActive: true,
    quietMs: 0,
    sweepCalls: sweepCallsOf(base.tables),
    tables: base.tables.length,
    changesByItself: true,
  });
}

/**
 * Returns the time until the budget allows the next sweep, ms. A first sync, a retry of a failed sync, a sync of a
 * replica that may have lost commits and a requested schema check do not wait.
 */
export function restOf(
  budget: LeasedBudget,
  base: SyncedBase,
  { schemaCheckRequestedAt, scanStartedAt }: Pick<BaseCache, "schemaCheckRequestedAt" | "scanStartedAt">,
): number {
  if (!base.sweep || base.error || budget.spentUntil || schemaCheckRequestedAt) return 0;
  if (scanStartedAt === Number.NEGATIVE_INFINITY) return 0;
  // Otherwise the lease's loop keeps the pace.
  if (!isPaced(budget, base)) return 0;
  const { sweepEveryMs } = cadenceFor(budget, base, "sweep");
  return Math.max(0, sweepEveryMs - agoMs(base, base.sweep.startedAt));
}

/** Returns whether the budget spreads sweeps out: they do not follow each other at once. */
export function isPaced(budget: LeasedBudget, base: SyncedBase): boolean {
  return cadenceFor(budget, base, "sweep").sweepEveryMs > SHORTEST_MS;
}
