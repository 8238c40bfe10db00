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
  quietPollMs,
  sweepCallsOf,
} from "./cadence";
export {
  FIRST_FAILURE_PAUSE_MS,
  failurePauseMs,
  gravity,
  isOutage,
  isWholeBases,
  itemPauseMs,
  MAX_FAILURE_PAUSE_MS,
} from "./failure-pause";
export {
  MANY_TRIES,
  MOST_PATIENCE_MS,
  OBSTACLE_MS,
  RECENT_MS,
  REST_MS,
  SHORTEST_MS,
  TICK_MS,
  TRIES,
  TURN_MS,
  TWICE_A_DAY_MS,
  UNPROMPTED_MS,
} from "./limits";
export { QuotaSplit, URGENT_PACE, type WorkPriority } from "./quota-split";
export { type DueItem, MOST_TABLES, periodic, Scheduler, type WorkKind } from "./scheduler";
