/** Workspaces of the source: plans, call budgets and usage. */
export { nextMonth, ownCallsKey, quotaKeyOf } from "../../source";
export { FORECAST_DAYS } from "./budget-rule";
export {
  allowancesOf,
  type Budget,
  budgetOf,
  budgetsOf,
  toBudgetJson,
  withBudgets,
} from "./budgets";
export { type CallEstimate, estimateCalls } from "./call-estimate";
export { type FleetBudgets, readFleetBudgets } from "./fleet-budgets";
export { forgetUnusedQuota } from "./quota-key";
export { type MinuteUse, type QuotaUse, quotaUse } from "./usage";
export {
  callsOfPlan,
  createWorkspace,
  defaultReserve,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  type Plan,
  plans,
  sourcePlans,
  updateWorkspace,
  type Workspace,
} from "./workspaces";
