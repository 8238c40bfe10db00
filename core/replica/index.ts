/** Replicas: naming, types, DDL, rows. The only code that writes to one. */
export { type Build, startBuild } from "./build";
export { changeShape } from "./change-shape";
export { differingRows } from "./differing-rows";
export {
  followLinkViews,
  followSettings,
  type LinkView,
  loadLinkViews,
  type ReplicaExtras,
  trimHistory,
} from "./extras";
export {
  countForeign,
  dropLeftovers,
  examineHosted,
  type HostedState,
  hasReplica,
  type Labelled,
  labelledDatabases,
  restoreHosted,
} from "./heal";
export {
  type Applied,
  applyImages,
  type Images,
  type JournalEntry,
  type JournalledWrite,
  journalledTables,
  journalSince,
  noteImage,
  rowIds,
  trimJournal,
  writesSince,
} from "./images";
export { ensureInstalled, installReplica } from "./install";
export { type ReplicaIssue, readIssues } from "./issues";
export { linkedIds, linkingIds } from "./links";
export { compileMapper, mapRecords, type RecordMapper } from "./map-record";
export { quoteIdent, snakeCase } from "./naming";
export { type Catalog, type CatalogTable, hasSameColumns, planSchema, type SchemaPlan } from "./plan";
export {
  databaseUrl,
  dropDatabase,
  guardDatabase,
  labelHosted,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  removeReplica,
  rotatePassword,
  setPassword,
  setWritable,
} from "./provision";
export { type Condition, type ReadRows, type RowQuery, readRows } from "./read-rows";
export {
  claimEpoch,
  loadCatalog,
  markRead,
  markSyncCompleted,
  markSyncEnded,
  markSyncStarted,
  openReplica,
  type Replica,
  type ReplicaTarget,
  takeTicket,
} from "./replica";
export { type ShapeChange, type ShapeChangeKind, type ShapeName, shapeChanges } from "./shape-changes";
export type {
  AttachmentUrls,
  CellIssue,
  ColumnSpec,
  ColumnType,
  ReadAs,
  Row,
  TableSpec,
  TypeSettings,
} from "./spec";
export { typeMapMarkdown } from "./type-map";
export { foreignNames, refreshViews } from "./views";
