/** Bases: rows, settings, runs, schema changes, deletion. */
export { attachmentSigner, type LinkedBase, linkedBases } from "./attachment-keys";
export {
  type Base,
  type BaseState,
  type LiveState,
  msOf,
  openIssueCount,
  type Progress,
  restored,
  type SyncKind,
  syncColumns,
  type TableCount,
  withTimes,
} from "./base-row";
export {
  activeBaseIds,
  createBase,
  decryptApiKey,
  getBase,
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
  type FailingTable,
  type SchemaError,
  saveFailingTables,
  saveSchemaError,
} from "./failing-tables";
export { startFinishing } from "./finish-loop";
export {
  type AskedIndex,
  type IndexSetting,
  MOST_INDEXES,
  renameIndexes,
  resolveIndexes,
  sameIndexes,
} from "./indexes";
export { MOST_MUTED_FIELDS, resolveMutedFields } from "./muted-fields";
export {
  type AskedName,
  MOST_OWN_NAMES,
  resolveOwnNames,
} from "./own-names";
export { connectOwn, selectingOf, sourceAccess } from "./own-source";
export { type FoundProblem, type ProblemKind, recordProblems, type SyncProblem } from "./problems";
export { readRecordRow, replicaShape, requestRebuild } from "./replica-contents";
export { lastReplicaState, recordReplicaState } from "./replica-history";
export { revokeAttachmentLinks } from "./revoke-links";
export {
  afterSweep,
  listRuns,
  type RunReport,
  recordRun,
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
  type BaseSettings,
  type RetypingSetting,
  type SettingsOfType,
  settingSections,
  settings,
} from "./settings";
export { type FieldDisplay, type SourceTableDisplay, saveSourceTables, sourceTables } from "./source-tables";
export { recordSourceUser } from "./source-user";
export {
  type SyncFacts,
  type SyncVersion,
  syncFactHashes,
  syncFacts,
  syncVersionDigests,
  syncVersions,
  versionGroupOf,
} from "./sync-facts";
