/** The sync engine: leases, sweeps, rebuilds, rapid mode; moving a base to another cluster. */
export { quotaKeyOf } from "../control";
export { BudgetWatch } from "./budget-watch";
export { oddIssues } from "./check-shape";
export { holdLease, type LeaseSignals, type Memories, type SyncContext } from "./lease";
export { PingWatch } from "./live/pings";
export { failedRun } from "./log-run";
export { type SyncMetrics, syncMetrics } from "./metrics";
export { type MoveContext, type MoveOptions, moveBase } from "./move-base";
export { failurePauseMs } from "./pauses";
export { SettingsWatch } from "./settings-watch";
