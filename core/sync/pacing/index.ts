/**
 * How often a base sends requests to the source: cadence, budget, shares of the rate limit, pauses after failures.
 */
export { BudgetWatch, type LeasedBudget, withinBudget } from "./budget-watch";
export {
  ACTIVE_FOR_MS,
  type Cadence,
  type CadenceFacts,
  CallBucket,
  cadenceOf,
  sweepCallsOf,
} from "./cadence";
export { failurePauseMs, gravity, isOutage, isWholeBases, itemPauseMs } from "./failure-pause";
export { QuotaSplit, URGENT_PACE, type WorkPriority } from "./quota-split";
export { type DueItem, MOST_TABLES, periodic, Scheduler, TICK_MS, type WorkKind } from "./scheduler";
