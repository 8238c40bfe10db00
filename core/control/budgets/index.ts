/** Workspaces of the source: plans, call budgets and usage. */
export { FORECAST_DAYS, leftForSync, type MonthUse, nextMonth, rateOf } from "./budget-rule";
export {
  type Allowance,
  allowancesOf,
  type Budget,
  budgetOf,
  budgetsOf,
  toBudgetJson,
  toWorkspaceJson,
  withBudgets,
} from "./budgets";
export { type FleetBudgets, readFleetBudgets } from "./fleet-budgets";
export { forgetUnusedQuota, ownCallsKey, quotaKeyOf } from "./quota-key";
export { type MinuteUse, type QuotaUse, quotaUse } from "./usage";
export {
  callsOfPlan,
  createWorkspace,
  defaultReserve,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  type NewWorkspace,
  type Plan,
  plans,
  sourcePlans,
  updateWorkspace,
  type Workspace,
} from "./workspaces";
