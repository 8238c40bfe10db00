/** The control plane: accounts, tokens, clusters, databases, bases and their runs. */

export { type Account, accountByEmail, createAccount } from "./accounts";
export { toBaseJson } from "./base-json";
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
  drainCluster,
  ensureDefaultCluster,
  listClusters,
} from "./clusters";
export {
  type Credentials,
  type Database,
  databaseAdminUrl,
  databaseCredentials,
  getDatabase,
  rotateCredentials,
} from "./databases";
export { asControlError, cleanText, connectControl, isConnectionError, jsonText } from "./db";
export { deleteBase, finishDeletions } from "./delete-base";
export type { Destination } from "./destinations";
export { type Indicator, indicatorOf, median } from "./indicator";
export { migrateControl, pendingMigrations } from "./migrate";
export { listRuns, type RunReport, recordRun, type SyncRun, saveProgress } from "./runs";
export { authenticate, createToken } from "./tokens";
