/** Clusters and databases: placement of replicas, checks of servers, customers' requests to the operator. */
export { inspectCluster } from "./cluster-check";
export {
  addCluster,
  type Cluster,
  changeCluster,
  clusterAdminUrl,
  clusterByName,
  drainCluster,
  ensureDefaultCluster,
  listClusters,
  type NewCluster,
} from "./clusters";
export { checkServer, type DatabaseCheck, describeServer, poolerProblem } from "./database-check";
export { type DatabaseContents, databaseContents } from "./database-contents";
export { settingsProblem } from "./database-settings";
export {
  type Credentials,
  createHostedDatabase,
  type Database,
  databaseAdminUrl,
  databaseCredentials,
  databaseReaderUrl,
  endDatabaseSessions,
  getDatabase,
  hiddenCredentials,
  inspectKnown,
  listDatabases,
  loginUrl,
  PASSWORD_PLACEHOLDER,
  readerRoleOf,
  rotateCredentials,
  setConnectionLimit,
  setDatabaseWritable,
  showCredentials,
} from "./databases";
export { checkSchemaName, type Destination, inspectDestination, prepareDestination } from "./destinations";
export {
  dropWhole,
  isUsedByOthers,
  removeStrays,
  removeUnusedDatabase,
  withDatabaseLocked,
} from "./drop-database";
export { asMover, endBrokenMoves, endMove } from "./end-move";
export { closeReaders, READER_STATEMENT_MS, type ReaderSql, readerPool } from "./reader-pools";
export { removeReadingUrl, requireReader, setReadingUrl } from "./reading-url";
export { checkReplicas, orphansOn, replicaDatabases } from "./reconcile";
export {
  createdAt,
  listRegions,
  locationName,
  locationOf,
  type Region,
  regionOfAccount,
  THIS_MACHINE,
} from "./regions";
export {
  approveRequest,
  createRequest,
  denyRequest,
  listRequests,
  type OperatorRequest,
  type RequestKind,
  requestKinds,
} from "./requests";
export { sharesOpenControl } from "./same-server";
export { isSameServer, serverIdentity } from "./server-identity";
export { type SpareKeeper, startSpares } from "./spares";
export {
  getSqlUser,
  listAllSqlUsers,
  listSqlUsers,
  nameSqlUsers,
  type SqlUser,
  type SqlUserWrites,
  saveSqlUserWrites,
} from "./sql-user-rows";
export { applySqlUserWrites } from "./sql-user-writes";
export {
  agentLogin,
  agentRoles,
  copySqlUsers,
  createSqlUser,
  endSqlUserSessions,
  revokeAgentUsers,
  revokeSqlUser,
  revokeUnusedAgentUsers,
  rotateSqlUser,
  showSqlUserCredentials,
} from "./sql-users";
export { startWatchdog } from "./watchdog";
