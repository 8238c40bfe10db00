/** Leases of bases. */

export { type BaseCaches, holdLease, type LeaseSignals, type SyncContext } from "./lease";
export { attachmentUrlsOf } from "./lease-input";
export { syncMetrics } from "./metrics";
export { failedRun } from "./save-run";
