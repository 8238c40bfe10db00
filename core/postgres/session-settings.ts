/**
 * The settings that every session of ours applies: a server, a database or a role may have other defaults, and none of
 * them may change what we write or read. Every module that connects applies this list.
 *
 * It excludes settings that are the owner's choice: read-only (providers turn it on when a disk is full), tablespaces,
 * memory, and settings that only affect the speed of a query.
 */

/** Known to every supported version, and allowed for every role. */
export const SESSION_SETTINGS = {
  // I5. The fence and the read versions of a replica require that each statement sees what was committed before it
  // began.
  default_transaction_isolation: "read committed",
  // Callers have their own deadlines; a pool may set another value.
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  idle_session_timeout: 0,
  // The conversion between values and text.
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  extra_float_digits: "1",
  bytea_output: "hex",
  xmlbinary: "base64",
  array_nulls: "on",
  standard_conforming_strings: "on",
  quote_all_identifiers: "off",
  // The meaning of statements.
  transform_null_equals: "off",
  row_security: "on",
  check_function_bodies: "on",
  default_table_access_method: "heap",
  gin_fuzzy_search_limit: "0",
  // An error that we catch must not end the session.
  exit_on_error: "off",
} as const;

/**
 * For the control plane: with Postgres' default search path, which finds the tables where the migrations created them.
 */
export const CONTROL_SETTINGS = { ...SESSION_SETTINGS, search_path: '"$user", public' } as const;

/**
 * Settings that are applied only if the session has other values: some servers lack them, or forbid roles to set them.
 */
export interface SettingsWhereDifferent {
  /** Of newer versions, or of an extension. */
  anyRole: Record<string, string>;
  /** For superusers only. The check of a database reports other roles' sessions if one of these matters. */
  superuser: Record<string, string>;
}

export const SETTINGS_WHERE_DIFFERENT: SettingsWhereDifferent = {
  anyRole: {
    transaction_timeout: "0",
    restrict_nonsystem_relation_kind: "",
    "plpgsql.extra_errors": "none",
  },
  superuser: {
    session_replication_role: "origin",
    "plpgsql.variable_conflict": "error",
  },
};
