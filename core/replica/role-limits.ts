/**
 * Limits of a customer's role on a server: the settings that it starts with, those that it cannot change, and the
 * limits that the watchdog enforces.
 */

/** Connections of one role, unless the database has its own limit. */
export const DEFAULT_CONNECTIONS = 10;

/**
 * Connections of the role of one SQL user of a database that has `connections`: half of them, so that no user takes
 * them all. The watchdog keeps all roles of a database together within `connections`.
 */
export function connectionsOfUser(connections: number = DEFAULT_CONNECTIONS): number {
  return Math.ceil(connections / 2);
}

/** Settings that a role starts with. It may change them in its own sessions: the watchdog enforces the limits. */
export const ROLE_DEFAULTS = {
  statement_timeout: "10min",
  idle_in_transaction_session_timeout: "5min",
  default_transaction_read_only: "on",
  lock_timeout: "30s",
  work_mem: "16MB",
  max_parallel_workers_per_gather: "2",
};

/**
 * Settings that only a superuser, or a role with `grant set on parameter`, may change. The customer's role cannot lift
 * them: temporary files per process, and no log lines for errors that the role causes.
 */
export const ENFORCED_SETTINGS = {
  temp_file_limit: "2GB",
  log_min_messages: "fatal",
};

/** Limits of a session of a customer's role; the watchdog ends a session that exceeds one. */
export const SESSION_LIMITS = {
  /** Seconds; twice the default timeouts, which a well-behaved client hits first. */
  idleInTransactionSeconds: 600,
  statementSeconds: 1200,
  transactionSeconds: 3600,
  /** Transactions started since the oldest snapshot of the session: vacuum cannot clean up after any of them. */
  snapshotAge: 10_000_000,
  /** Parallel workers of one session. */
  parallelWorkers: 4,
  /** Temporary files of all sessions of a database's roles, in bytes. */
  tempBytes: 8 * 1024 ** 3,
};
