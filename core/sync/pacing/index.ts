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
export {
  FIRST_FAILURE_PAUSE_MS,
  failurePauseMs,
  gravity,
  isOutage,
  isWholeBases,
  MAX_FAILURE_PAUSE_MS,
} from "./failure-pause";
export {
  MANY_TRIES,
  MOST_PATIENCE_MS,
  OBSTACLE_MS,
  REST_MS,
  SHORTEST_MS,
  TRIES,
  UNPROMPTED_MS,
} from "./limits";
export { QuotaSplit, URGENT_PACE, type WorkPriority } from "./quota-split";
export { type DueItem, MOST_TABLES, periodic, Scheduler, TICK_MS, type WorkKind } from "./scheduler";
