/** Replicas: naming, types, DDL, rows. The only code that writes to one. */
export { type Build, startBuild } from "./build";
export { changeShape } from "./change-shape";
export {
  type Applied,
  applyImages,
  type Images,
  type JournalEntry,
  type JournalledWrite,
  journalSince,
  noteImage,
  rowIds,
  trimJournal,
  writesSince,
} from "./images";
export { ensureInstalled, installReplica } from "./install";
export { type ReplicaIssue, readIssues } from "./issues";
export { compileMapper, mapRecords, type RecordMapper } from "./map-record";
export { quoteIdent, snakeCase } from "./naming";
export { type Catalog, type CatalogTable, hasSameColumns, planSchema, type SchemaPlan } from "./plan";
export {
  databaseUrl,
  dropDatabase,
  type Provisioned,
  provisionDatabase,
  removeReplica,
  rotatePassword,
  setWritable,
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
export { type ShapeChange, type ShapeChangeKind, type ShapeName, shapeChanges } from "./shape-changes";
export type { CellIssue, ColumnSpec, ColumnType, Row, TableSpec, TypeSettings } from "./spec";
export { typeMapMarkdown } from "./type-map";
export { foreignNames, refreshViews } from "./views";
