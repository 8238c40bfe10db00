/** The control plane: accounts, tokens, clusters, databases, bases and their runs. */

export { type AccountSummary, listAccounts } from "./account-list";
export { type Account, accountByEmail, checkEmail, createAccount, nameOf } from "./accounts";
export { kindOfAddress } from "./address-guard";
export { attachmentSigner, type LinkedBase, linkedBase } from "./attachment-keys";
export { type AuditDetails, type AuditEntry, listChanges, noteChange, trimAudit } from "./audit";
export { type AuditAction, auditActions } from "./audit-actions";
export { baseJson, baseJsons, toBaseJson } from "./base-json";
export { type BaseSummary, listBaseSummaries, selectBaseSummaries } from "./base-list";
export type {
  Base,
  BaseIssue,
  BaseSettings,
  BaseState,
  LiveState,
  Progress,
  SyncKind,
  TableCount,
} from "./base-row";
export {
  activeBaseIds,
  createBase,
  getBase,
  letRest,
  listBases,
  listSourceBases,
  type ManagementContext,
  type NewBase,
  openApiKey,
  pause,
  type ReplicaTarget,
  replicaTarget,
  requestResync,
  resume,
  unsealApiKey,
  updateSettings,
} from "./bases";
export { type Forecast, forecastOf, leftForSync, rateOf } from "./budget-rule";
export {
  type Allowance,
  allowancesOf,
  type Budget,
  type BudgetState,
  budgetOf,
  budgetsOf,
  toBudgetJson,
  toWorkspaceJson,
} from "./budgets";
export { requestCatchUp, settleCatchUp } from "./catch-ups";
export { clusterTroubles, inspectCluster, type Trouble } from "./cluster-check";
export {
  addCluster,
  type Cluster,
  clusterAdminUrl,
  clusterByName,
  drainCluster,
  ensureDefaultCluster,
  listClusters,
} from "./clusters";
export { type ReplicaShape, replicaShape } from "./columns";
export { inspectControl } from "./control-check";
export { type DatabaseCheck, describeServer } from "./database-check";
export {
  type Credentials,
  createHostedDatabase,
  type Database,
  databaseAdminUrl,
  databaseCredentials,
  getDatabase,
  inspectKnown,
  listDatabases,
  rotateCredentials,
  setConnectionLimit,
  setDatabaseWritable,
  showCredentials,
} from "./databases";
export { asControlError, cleanText, connectControl, jsonText, requireWritable } from "./db";
export { type DeletionOptions, deleteBase, fence, finishDeletions } from "./delete-base";
export { checkSchemaName, type Destination, inspectDestination } from "./destinations";
export type { DraftBudget } from "./draft-workspace";
export {
  type Choice,
  createDraft,
  type Draft,
  type DraftDestination,
  draftChoices,
  finishDraft,
  getDraft,
  latestDraft,
  setDraftBase,
  setDraftDestination,
  setDraftKey,
} from "./drafts";
export { removeUnusedDatabase } from "./drop-database";
export { asMover, endMove } from "./end-move";
export { startFinishing } from "./finish-loop";
export { fleetMetrics } from "./fleet-metrics";
export { type Ailment, ailmentsOf, orphansOn, replicaDatabases } from "./heal";
export { isId, newId } from "./ids";
export { type AskedIndex, type IndexSetting, MOST_INDEXES, renameIndexes, resolveIndexes } from "./indexes";
export { type Indicator, indicatorOf, isLive, median } from "./indicator";
export {
  addMissed,
  closeGap,
  hookSecretContext,
  type KeptFeed,
  keepHook,
  loadFeed,
  noteFresh,
  noteGap,
  noteGapOfAny,
  noteHookWell,
  notePing,
  noteRead,
  noteRefused,
  noteStale,
  noteUnpinged,
  PING_CHANNEL,
  pingSecret,
  saveCursor,
} from "./live-feeds";
export {
  acceptInvitation,
  findInvitation,
  type Invitation,
  inviteMember,
  listInvitations,
  listMembers,
  type Member,
  withdrawInvitation,
} from "./members";
export { migrateControl, pendingMigrations } from "./migrate";
export { nextMonth } from "./next-month";
export {
  checkPassword,
  hashPassword,
  isPasswordQueueFull,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  verifyPassword,
} from "./passwords";
export { prepareControl } from "./prepare-control";
export { type Quarantine, quarantine, retryQuarantined } from "./quarantine";
export { forgetUnusedQuota, ownCallsKey, quotaKeyOf } from "./quota-key";
export {
  type Removal,
  type RemovalOptions,
  type Remover,
  removeMember,
  removerOf,
} from "./remove-member";
export { requestRepairs } from "./repair-requests";
export { lastReplicaState, noteReplicaState } from "./replica-history";
export {
  approveRequest,
  createRequest,
  denyRequest,
  listRequests,
  type NewRequest,
  type OperatorRequest,
  type RequestKind,
  type RequestState,
  requestKinds,
} from "./requests";
export { completeReset, makeResetLink } from "./reset-link";
export { revokeAttachmentLinks } from "./revoke-links";
export { listRuns, type RunReport, recordRun, type SyncRun, saveProgress, trimRuns } from "./runs";
export { isControlServer } from "./same-server";
export {
  listSchemaChanges,
  recordSchemaChanges,
  type SchemaChange,
  settleSchemaLook,
} from "./schema-changes";
export {
  contextOf,
  examineSeals,
  rotateSeals,
  type SealCount,
  type SealedColumn,
  sealedColumns,
} from "./seals";
export { agoMs, serverNow } from "./server-time";
export { forgetExpired, listSessions, revokeOtherSessions, revokeSession, type Session } from "./sessions";
export { noteSourceUser } from "./source-user";
export { type SyncFacts, syncFacts } from "./sync-facts";
export type { QuarantinedTask } from "./task-attempts";
export { type ApiToken, authenticate, createToken, listTokens, revokeToken } from "./tokens";
export { type MinuteUse, type QuotaUse, quotaUse } from "./usage";
export { countChange, countUserEvent, recordUserEvent, type UserEvent } from "./user-audit";
export { actorOf, type Role, switchAccount, type Viewer, viewerOf } from "./viewers";
export { startWatchdog, type Watchdog } from "./watchdog";
export {
  basesBuilding,
  type FleetState,
  fleetState,
  type LivingWorker,
  listWorkers,
  livingWorkers,
  removeWorker,
  reportWorker,
  type Worker,
} from "./workers";
export {
  createWorkspace,
  deleteWorkspace,
  getWorkspace,
  listWorkspaces,
  type NewWorkspace,
  type Plan,
  planCalls,
  plans,
  updateWorkspace,
  type Workspace,
} from "./workspaces";
