/** The sync engine: leases, sweeps, rebuilds. */
export {
  failedRun,
  holdLease,
  type LeaseSignals,
  type Memories,
  quotaKeyOf,
  type SyncContext,
} from "./lease";
export { type SyncMetrics, syncMetrics } from "./metrics";
