/** Connections to Postgres: clients, options, sessions, poolers, and the classes of its errors. */
export { ARRAY_TYPES } from "./array-types";
export { connectServer, type NewConnection, ownServer, type SessionOptions } from "./client";
export {
  asControlError,
  asOnly,
  checkedName,
  checkedText,
  cleanText,
  connectControl,
  IDLE_TIMEOUT_SECONDS,
  isForeignKeyViolation,
  isUniqueViolation,
  jsonParameter,
  requireWritable,
  storedMessage,
} from "./control-database";
export {
  CERTIFICATE_CODES,
  isConnectionError,
  isNotWritable,
  isServerFailure,
  TRANSACTION_POOLED,
  TransactionPooled,
} from "./errors";
export { ipv6OnlyProblem } from "./ipv6-only";
export { requireKeptSessions } from "./kept-sessions";
export { WATCHED_BY_SERVER } from "./options";
export { CLOSE_SECONDS, closePg, connectPg, pgOptions } from "./pg-client";
export { CONNECT_SECONDS } from "./pooling";
export { probe, type ServerReport } from "./probe";
export { agoMs, serverNow, serverTime } from "./server-time";
export { knownTransactionPooler, refuseKnownPooler, sessionRemedy } from "./session-urls";
export { arrayOf } from "./sql-array";
export { isNewer, isTemplateOutdated, templateVersion } from "./template-version";
