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
export { failurePauseMs, isOutage } from "./failure-pause";
export { QuotaSplit, URGENT_PACE, type WorkPriority } from "./quota-split";
export { atRate, LEAST_MS, type TimeRange, timeLeft, timeOfCalls } from "./time-left";
