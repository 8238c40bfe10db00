/** Replicas: naming, types, DDL, rows. No other code writes to a replica. */
export { type AliasUsers, aliasUsers, namesInTexts } from "./alias-users";
export {
  type Alias,
  expireAliases,
  type LostAlias,
  loadAliases,
  loadLostAliases,
  withoutBarringAliases,
} from "./aliases";
export {
  ATTACHMENTS_PATH,
  type AttachmentRef,
  type AttachmentSigner,
  attachmentPrefix,
  createSigner,
  isSignedBy,
} from "./attachment-link";
export { type Build, startBuild } from "./build";
export { changeShape } from "./change-shape";
export {
  BASE_CONNECTIONS,
  connectReplica,
  isOtherTimeline,
  LONGEST_ANSWER_MS,
  SAFE_SEARCH_PATH,
} from "./connection";
export { copyNames } from "./copy-names";
export { consoleRoleOf, ROLE_PATTERN } from "./database-roles";
export { differingRows } from "./differing-rows";
export { dropColumns } from "./drop-columns";
export { droppedRelations } from "./dropped";
export { viewsWithForeignCode } from "./foreign-code";
export { type CellsToForget, cellsNotShown, cellsToForget, forgetCells } from "./forget-cells";
export { grantColumns, type SchemaContents } from "./grant-columns";
export { handOver, type KnownRows, takeOver } from "./handover";
export { withHolders } from "./holders";
export { type IdWatch, watchIds } from "./id-burners";
export {
  applyIndexes,
  dropFullIndexes,
  hasTrigrams,
  type IndexKind,
  indexedColumns,
  type WantedIndex,
} from "./indexes";
export { ensureInstalled, installReaders, installReplica, OWN_RELATIONS } from "./install";
export { NOT_A_NUMBER, ROW_TOO_WIDE, UNSTORABLE_TEXT } from "./issue-reasons";
export { type IssueGroup, issuesOf, readIssues, recordUnreadable, type UnreadableIssue } from "./issues";
export { linkedIds, linkingIds } from "./links";
export { beginWrite, locateRecords } from "./locate";
export { compileMapper, mapRecords, type RecordMapper } from "./map-record";
export {
  type Compared,
  checkChange,
  compareBuild,
  dropUnfinished,
  fillColumns,
  MERGED_ROWS,
  mergeBuild,
} from "./merge";
export { MAX_NAME_BYTES, quoteIdent, refusalOfName, snakeCase } from "./naming";
export {
  ATTACHMENT_DETAILS,
  type AttachmentView,
  applyLinkViews,
  applySettings,
  type LinkView,
  loadViews,
  type ReplicaViews,
  trimHistory,
} from "./optional-features";
export {
  copyOutbox,
  listQueuedWrites,
  type Outbox,
  openOutbox,
  type QueuedTransaction,
} from "./outbox";
export { endPauses, pauseRole } from "./paused-roles";
export {
  type Catalog,
  type CatalogTable,
  hasSameColumns,
  onlyAddsColumns,
  onlyDropsColumns,
  planSchema,
  type SchemaPlan,
} from "./plan";
export { prepareCluster } from "./prepare-cluster";
export {
  databaseUrl,
  dropDatabase,
  endSessionsOf,
  labelHosted,
  lockDownDatabase,
  nameDatabase,
  type Provisioned,
  provisionDatabase,
  randomPassword,
  removeReplica,
  restoreLimits,
  rotatePassword,
  setPassword,
  setWritable,
  TEMPLATE_DATABASE,
  withAdmin,
} from "./provision";
export { type AskedChanges, type ReadChanges, readChanges } from "./read-changes";
export { type ReadRows, type RowPosition, readRows, type SortKey } from "./read-rows";
export {
  type ReaderLimits,
  type ReaderSession,
  type ReaderTarget,
  withReader,
} from "./reader-session";
export {
  countForeign,
  dropLeftovers,
  examineHosted,
  type HostedState,
  hasReplica,
  type Labelled,
  labelledDatabases,
  restoreHosted,
} from "./reconcile";
export { asRefusal, nameConflict } from "./refusal";
export { type ColumnSlots, columnSlots, POSTGRES_COLUMNS, replaceTable } from "./replace-table";
export {
  beginSync,
  claimEpoch,
  claimEpochAbove,
  completeSync,
  type KnownCatalog,
  type KnownTables,
  loadCatalog,
  markAtRest,
  markRead,
  markSyncCompleted,
  markSyncEnded,
  markSyncStarted,
  markSyncUnchanged,
  openReplica,
  type Replica,
  type ReplicaTarget,
  readCatalog,
  recordDamage,
  renewLease,
  requireOwn,
  takeReadVersion,
} from "./replica";
export { reservedWords } from "./reserved-words";
export { connectionsOfUser, ENFORCED_SETTINGS } from "./role-limits";
export { type PasswordHandling, passwordHandling } from "./role-password";
export type {
  Comparison,
  Condition,
  DateExpression,
  DatePart,
  DateUnit,
  NumberExpression,
  TextExpression,
} from "./row-conditions";
export {
  type Applied,
  applyRowImages,
  type LoggedWrite,
  latestReadVersions,
  loggedTables,
  type RecentWrite,
  type RowImageBatch,
  recentWritesSince,
  recordRowImage,
  rowIds,
  trimRecentWrites,
  writesSince,
} from "./row-images";
export {
  CHECKING,
  openForCheck,
  READER_CONNECTIONS,
  serverPool,
  shareServers,
  syncConnections,
} from "./server-pools";
export { ensureLogin, giveDatabase, type Login, loginOf, majorVersion, tryAll } from "./server-roles";
export {
  type Severity,
  type ShapeChange,
  type ShapeChangeKind,
  type ShapeName,
  severities,
  severityOf,
  shapeChanges,
} from "./shape-changes";
export { claimSpare, prepareSpare, SPARE_SCHEMA, spareDatabases } from "./spare-databases";
export {
  type AttachmentUrls,
  type CellIssue,
  type ColumnSpec,
  type NameSettings,
  type OwnName,
  READ_VIEW,
  type ReadAs,
  type TableSpec,
  type TypeSettings,
} from "./spec";
export {
  createConsoleRole,
  createSqlUserRole,
  dropSqlUserRole,
  ensureConsoleRole,
  examineSqlUserRoles,
  restoreSqlUserRole,
  type SqlUserRole,
  setSqlUserWritable,
} from "./sql-users";
export { type StatementCount, statementCounts } from "./statements";
export { columnTypeOf, type ReadBack, traitsOf } from "./type-map";
export { foreignNames, retiredTables, settleDependents } from "./views";
export { type EndReason, endExcess, readActivity } from "./watchdog";
export { WRITABLE_TYPES } from "./writable-types";
export {
  grantWrites,
  installWrites,
  MAX_WRITE_BYTES,
  removeWrites,
  writesVersion,
} from "./write-door";
export { writeSchemasOf, writeViewOf } from "./write-schemas";
