/** How fresh bases were, over hours and months: periods, rollups, charts. */

export { type AccountCalls, accountCalls, type CallsOfBase } from "./account-calls";
export { type CallerCalls, callsOver } from "./calls";
export { type FleetHour, fleetHistory } from "./fleet-history";
export type { LagBucket } from "./lag";
export { type CurrentPeriod, type Period, periodOf, savePeriods } from "./periods";
export { rollUpHours } from "./rollup";
export {
  type BaseHistory,
  baseHistory,
  type HistoryRange,
  historyRanges,
  type LagHistory,
  lagHistory,
} from "./series";
export {
  newStatusPage,
  type PublicBase,
  publicStatus,
  type StatusDay,
  statusToken,
  turnOffStatusPage,
} from "./status-page";
export { type BaseToday, todayOf } from "./today";
