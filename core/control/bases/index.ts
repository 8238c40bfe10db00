/** Bases: rows, settings, runs, schema changes, deletion. */

export type {
  BaseState,
  ProblemKind,
  Progress,
  SyncKind,
  SyncProblem,
  TableCount,
} from "../../sync/host";
export { attachmentSigner, linkedBases } from "./attachment-keys";
export {
  type Base,
  type LiveState,
  msOf,
  openIssueCount,
  restored,
  syncColumns,
  withTimes,
} from "./base-row";
export {
  activeBaseIds,
  activeBases,
  attentionPauseMs,
  createBase,
  decryptApiKey,
  getBase,
  getBases,
  listBaseNames,
  listBases,
  listSourceBases,
  type ManagementContext,
  openApiKey,
  pause,
  readerTarget,
  recheckFeed,
  replicaTarget,
  requestResync,
  restUntil,
  resume,
  updateSettings,
} from "./bases";
export {
  type ChangeEffect,
  resyncEffect,
  savedText,
  settingEffect,
} from "./change-effect";
export { deleteBase, fence, finishDeletions } from "./delete-base";
export {
  saveFailingTables,
  saveSchemaError,
} from "./failing-tables";
export { startFinishing } from "./finish-loop";
export {
  type AskedIndex,
  MOST_INDEXES,
  renameIndexes,
  resolveIndexes,
} from "./indexes";
export { MOST_MUTED_FIELDS, resolveMutedFields } from "./muted-fields";
export {
  type AskedName,
  MOST_OWN_NAMES,
  resolveOwnNames,
} from "./own-names";
export { connectOwn, selectingOf, sourceAccess } from "./own-source";
export { recordProblems } from "./problems";
export { readRecordRow, replicaShape, requestRebuild } from "./replica-contents";
export { lastReplicaState, recordReplicaState } from "./replica-history";
export { restoreSqlWrites } from "./restore-writes";
export { revokeAttachmentLinks } from "./revoke-links";
export {
  afterSweep,
  listRuns,
  recordRun,
  recordWatched,
  type SyncRun,
  saveProgress,
} from "./runs";
export {
  completeSchemaCheck,
  listSchemaChanges,
  recordSchemaChanges,
  type SchemaChange,
} from "./schema-changes";
export {
  normalized,
  searchBases,
  searchTables,
  searchTerms,
} from "./search";
export { checkChoice, readSelectableWith } from "./selectable";
export { readSelectable, setSelection } from "./selection";
export { EVERYTHING, selectableJson, selectionFromJson, selectionJson } from "./selection-json";
export {
  interruptedBy,
  retypingSettings,
  type Setting,
  settingByName,
  settingList,
  settingsFromJson,
  settingsJson,
} from "./setting-values";
export {
  type RetypingSetting,
  type SettingsOfType,
  settingSections,
  settings,
} from "./settings";
export { SettingsWatch } from "./settings-watch";
export {
  type FieldDisplay,
  MOST_CHOICES,
  type SourceTableDisplay,
  saveSourceTables,
  sourceTables,
  tableChanges,
} from "./source-tables";
export { recordSourceUser } from "./source-user";
export { type AskedWrites, allowWrites, createSqlUserOf, resolveWrites } from "./sql-writers";
export { installedWrites, OUTBOX_CHANNEL, switchSqlWrites, writeAccessOf } from "./sql-writes";
export { syncFacts } from "./sync-facts";
