/** Leases of bases, and moving a base to another cluster. */
export { type BaseCaches, holdLease, type LeaseSignals, type SyncContext } from "./lease";
export { failedRun } from "./log-run";
export { syncMetrics } from "./metrics";
export { moveBase } from "./move-base";
export { SettingsWatch } from "./settings-watch";
