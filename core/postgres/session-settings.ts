/**
 * What every session of ours on a Postgres server sets: a server, a database or a role may have other defaults, and none
 * of them may change what we write or read. The one list; whatever connects applies it.
 *
 * Not in it, as they are the owner's to choose: read-only (providers turn it on when a disk is full), tablespaces, memory,
 * and whatever makes a query only faster or slower.
 */

/** Known to every version that we run on, and free to set for every role. */
export const SESSION_SETTINGS = {
  // I5. The fence and the read versions of a replica rely on each statement seeing what was committed before it began.
  default_transaction_isolation: "read committed",
  // Whoever waits has a deadline of its own; a pool may set another.
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  idle_session_timeout: 0,
  // How values become text and texts values.
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  extra_float_digits: "1",
  bytea_output: "hex",
  xmlbinary: "base64",
  array_nulls: "on",
  standard_conforming_strings: "on",
  quote_all_identifiers: "off",
  // What a statement means.
  transform_null_equals: "off",
  row_security: "on",
  check_function_bodies: "on",
  default_table_access_method: "heap",
  gin_fuzzy_search_limit: "0",
  // An error that we catch must not end the session.
  exit_on_error: "off",
} as const;

/** On the control plane: with Postgres' own search path, as tables are where the migrations have made them. */
export const CONTROL_SETTINGS = { ...SESSION_SETTINGS, search_path: '"$user", public' } as const;

/** Settings that are left alone where the session has these values: not every server knows them, or lets every role set them. */
export interface SettingsWhereDifferent {
  /** Of newer versions, or of an extension. */
  anyRole: Record<string, string>;
  /** For superusers only. Of another role's sessions the check of a database tells where one matters. */
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
