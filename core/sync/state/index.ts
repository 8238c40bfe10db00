/** The data that a worker caches about a base between syncs. */
export {
  BaseCache,
  forgetRows,
  mappingOf,
  requestSchemaCheck,
  restore,
  type SweepScan,
  type TableCache,
  tableCache,
} from "./base-cache";
export type { DirtyRecord, EarlyImage } from "./dirty-entries";
export { type DirtyBatch, DirtySet, MAX_BATCH } from "./dirty-set";
export type { EditedTables } from "./edited-tables";
export { evictFingerprints } from "./evict";
export type { FilledBuild, VersionByScan } from "./filled-build";
export { Fingerprints } from "./fingerprints";
export { LiveCache } from "./live-cache";
export { MassChange } from "./mass-change";
export { FEED_LATE_MS, type FoundBy, MissedChanges } from "./missed-changes";
export { packCache, unpackCache } from "./pack";
export { QUIET_SWEEP_AGE_MS, ReadVersionSource, SWEEP_AGE_MS, type VersionedPage } from "./read-versions";
export { fingerprintIn, isUrlRefresh, validUntil } from "./record-fingerprint";
export { isOfTable, isRefusedRead, ofTable, patienceAfter, TableFailures } from "./table-failures";
