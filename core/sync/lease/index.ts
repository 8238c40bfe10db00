/** Leases of bases. */

export { type BaseCaches, holdLease, type LeaseSignals, type SyncContext } from "./lease";
export { attachmentUrlsOf } from "./lease-input";
export { failedRun } from "./log-run";
export { syncMetrics } from "./metrics";
