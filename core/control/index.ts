/** The control plane: accounts, tokens, clusters, databases, bases and their runs. */

export { type AccountSummary, listAccounts } from "./account-list";
export { type Account, accountByEmail, checkEmail, createAccount, nameOf } from "./accounts";
export { toBaseJson } from "./base-json";
export { type BaseSummary, listBaseSummaries } from "./base-list";
export type {
  Base,
  BaseIssue,
  BaseSettings,
  BaseState,
  Progress,
  SyncKind,
  TableCount,
} from "./base-row";
export {
  activeBaseIds,
  createBase,
  getBase,
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
  updateSettings,
} from "./bases";
export { clusterTroubles, replicaTrouble, type Trouble } from "./cluster-check";
export {
  addCluster,
  type Cluster,
  clusterAdminUrl,
  clusterByName,
  drainCluster,
  ensureDefaultCluster,
  listClusters,
} from "./clusters";
export { replicaTables } from "./columns";
export {
  type Credentials,
  createHostedDatabase,
  type Database,
  databaseAdminUrl,
  databaseCredentials,
  getDatabase,
  listDatabases,
  rotateCredentials,
  setDatabaseWritable,
} from "./databases";
export { asControlError, cleanText, connectControl, isConnectionError, jsonText } from "./db";
export { deleteBase, fence, finishDeletions } from "./delete-base";
export { checkSchemaName, type Destination } from "./destinations";
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
export type { Finding } from "./external-database";
export { newId } from "./ids";
export { type Indicator, indicatorOf, median } from "./indicator";
export {
  acceptInvitation,
  findInvitation,
  type Invitation,
  inviteMember,
  listInvitations,
  listMembers,
  type Member,
  removeMember,
  withdrawInvitation,
} from "./members";
export { migrateControl, pendingMigrations } from "./migrate";
export { nextMonth } from "./next-month";
export {
  checkPassword,
  hashPassword,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
  verifyPassword,
} from "./passwords";
export { forgetUnusedQuota, quotaKeyOf } from "./quota-key";
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
export { listRuns, type RunReport, recordRun, type SyncRun, saveProgress, trimRuns } from "./runs";
export {
  listSchemaChanges,
  recordSchemaChanges,
  type SchemaChange,
  settleSchemaLook,
} from "./schema-changes";
export { forgetExpired, listSessions, revokeOtherSessions, revokeSession, type Session } from "./sessions";
export { type SyncFacts, syncFacts } from "./sync-facts";
export { type ApiToken, authenticate, createToken, listTokens, revokeToken } from "./tokens";
export { type MinuteUse, type QuotaUse, quotaUse } from "./usage";
export { type Role, switchAccount, type Viewer, viewerOf } from "./viewers";
export { type FleetState, fleetState, listWorkers, removeWorker, reportWorker, type Worker } from "./workers";
