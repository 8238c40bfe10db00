/** Replicas: naming, types, DDL, rows. The only code that writes to one. */
export { type Build, startBuild } from "./build";
export { changeShape } from "./change-shape";
export {
  type Applied,
  applyImages,
  type Images,
  type JournalEntry,
  journalSince,
  noteImage,
  rowIds,
  trimJournal,
} from "./images";
export { ensureInstalled, installReplica } from "./install";
export { type ReplicaIssue, readIssues } from "./issues";
export { compileMapper, mapRecords, type RecordMapper } from "./map-record";
export { quoteIdent } from "./naming";
export { type Catalog, type CatalogTable, planSchema, type SchemaPlan } from "./plan";
export {
  databaseUrl,
  dropDatabase,
  type Provisioned,
  provisionDatabase,
  removeReplica,
  rotatePassword,
} from "./provision";
export {
  claimEpoch,
  loadCatalog,
  markSyncCompleted,
  markSyncStarted,
  openReplica,
  type Replica,
  type ReplicaTarget,
  takeTicket,
} from "./replica";
export type { CellIssue, ColumnSpec, ColumnType, Row, TableSpec, TypeSettings } from "./spec";
export { typeMapMarkdown } from "./type-map";
