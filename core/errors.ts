/**
 * Every error that Basetide raises on purpose: one class, a closed list of codes.
 *
 * Each code has its cause and remedy here, the job loop's next step (`nextStep`) and the HTTP status of an app's answer
 * (`httpStatus`). All three tables are total: a new code does not compile until all of them include it.
 */

import { scrub } from "./scrub";

/** Code → its cause and its remedy, as users read them. */
export const errorCodes = {
  // The source (Airtable) and connections to it
  source_key_refused: "The source does not accept the API key: it is wrong or revoked. Supply a new key.",
  source_forbidden:
    "The API key may not read this base, lacks a scope, or the base is gone. Give the key access or tick the missing scope.",
  source_not_found: "The source does not know this base, table or record any more.",
  source_rate_limited: "The source asked for a pause (429). Syncing goes on by itself after 30 seconds.",
  source_billing_limit:
    "The source's monthly cap on API calls is reached. Raise the plan, or wait for the month to end.",
  source_unavailable: "The source could not be reached or answered 5xx. It is tried again by itself.",
  source_timeout: "The source did not answer in time. It is tried again by itself.",
  source_bad_answer:
    "The source answered something that is not its API (broken JSON, HTML, an endless list). It is tried again by itself.",
  source_iterator_lost: "The source forgot where a list stood. The table is read again from its start.",
  source_schema_changed:
    "A table or field that was asked for is not there any more. The schema is looked at again.",
  source_rejected: "The source refused the request as invalid.",
  // Syncing
  lease_lost: "Another worker took over this base. Nothing more is written by this one.",
  shape_changed:
    "The replica table has changed its columns since the rows were prepared. They are prepared again.",
  sync_stopped:
    "The sync was asked to stop (shutdown, pause or delete). It goes on where it is next started.",
  sync_crashed:
    "Syncing this base ended or froze the process that did it, several times. It is tried again by itself after a growing pause. Check its database, or move it to another one; then ask for a sync.",
  // The replica
  replica_unavailable: "The replica's database cannot be reached. It is tried again by itself.",
  replica_busy: "A table could not be swapped because queries hold it. It is tried again by itself.",
  replica_refused:
    "A constraint or a trigger that is not Basetide's refuses rows of a table, which stands still; the message names it. Relax or drop it: the table goes on by itself.",
  destination_invalid: "The destination database cannot be used as given; the message says what is missing.",
  // The control plane
  control_unavailable: "The control-plane database cannot be reached. It is tried again by itself.",
  secret_unreadable:
    "A stored secret cannot be decrypted with SECRET_KEY. Restore the key that it was encrypted with.",
  // The quota
  quota_timeout: "No request slot of the base came free in time. Ask again later.",
  budget_spent:
    "The call budget leaves sync nothing more this month; clients go on. It is lifted by a larger budget, or when the month ends.",
  // The management API
  unauthorized: "The request has no valid API token. Send `Authorization: Bearer <token>`.",
  invalid_credentials: "E-mail and password do not match an account.",
  forbidden: "This account may not do that.",
  not_found: "There is no such thing, or it belongs to another account.",
  rate_limited: "Too many requests or attempts. Go on when as many seconds are over as Retry-After says.",
  invalid_request: "The request is not of the right form; the message names the part.",
  malformed_request:
    "The request's target or Host header is not in its normal form. Send the path that is meant, and a valid Host.",
  already_exists: "It exists already.",
  conflict: "The thing's state does not allow this now; the message says why.",
  // Start
  config_invalid: "An environment variable has a value that cannot be used; the message names each.",
  port_taken: "A port is in use by another program. Stop it, or set another port.",
  postgres_failed: "The embedded Postgres did not start; the message holds its last words.",
  internal: "A fault in Basetide itself. The log has the details under the request's id.",
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** The job loop's next step. `needs_attention` waits until a person acts, with a retry every few minutes. */
export type NextStep = "retry" | "wait" | "restart_table" | "check_schema" | "needs_attention" | "stop";

export const nextStep: Record<ErrorCode, NextStep> = {
  source_key_refused: "needs_attention",
  source_forbidden: "needs_attention",
  source_not_found: "check_schema",
  source_rate_limited: "wait",
  source_billing_limit: "needs_attention",
  source_unavailable: "retry",
  source_timeout: "retry",
  source_bad_answer: "retry",
  source_iterator_lost: "restart_table",
  source_schema_changed: "check_schema",
  source_rejected: "retry",
  lease_lost: "stop",
  shape_changed: "check_schema",
  sync_stopped: "stop",
  sync_crashed: "needs_attention",
  replica_unavailable: "retry",
  replica_busy: "retry",
  replica_refused: "retry",
  destination_invalid: "needs_attention",
  control_unavailable: "retry",
  secret_unreadable: "needs_attention",
  quota_timeout: "retry",
  budget_spent: "wait",
  unauthorized: "stop",
  invalid_credentials: "stop",
  forbidden: "stop",
  not_found: "stop",
  rate_limited: "stop",
  invalid_request: "stop",
  malformed_request: "stop",
  already_exists: "stop",
  conflict: "stop",
  config_invalid: "stop",
  port_taken: "stop",
  postgres_failed: "stop",
  internal: "retry",
};

export const httpStatus: Record<ErrorCode, number> = {
  source_key_refused: 422,
  source_forbidden: 422,
  source_not_found: 422,
  source_rate_limited: 503,
  source_billing_limit: 503,
  source_unavailable: 502,
  source_timeout: 504,
  source_bad_answer: 502,
  source_iterator_lost: 502,
  source_schema_changed: 502,
  source_rejected: 422,
  lease_lost: 409,
  shape_changed: 409,
  sync_stopped: 409,
  sync_crashed: 503,
  replica_unavailable: 503,
  replica_busy: 503,
  replica_refused: 503,
  destination_invalid: 422,
  control_unavailable: 503,
  secret_unreadable: 500,
  quota_timeout: 504,
  budget_spent: 503,
  unauthorized: 401,
  invalid_credentials: 401,
  forbidden: 403,
  not_found: 404,
  rate_limited: 429,
  invalid_request: 422,
  malformed_request: 400,
  already_exists: 409,
  conflict: 409,
  config_invalid: 500,
  port_taken: 500,
  postgres_failed: 500,
  internal: 500,
};

/** Facts about an error for the log and the API: never a secret, never a cell. */
export type ErrorDetails = Record<string, string | number | boolean | null | undefined>;

/** An error of ours: `code` determines the handling, `message` is for people, `cause` is the original error. */
export class BasetideError extends Error {
  override readonly name = "BasetideError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message?: string, options: { cause?: unknown; details?: ErrorDetails } = {}) {
    // Some messages quote a driver or a source, which may quote their input.
    super(
      message === undefined ? errorCodes[code] : scrub(message),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** Is `error` one of ours, with this code if one is given? */
export function isBasetideError(error: unknown, code?: ErrorCode): error is BasetideError {
  return error instanceof BasetideError && (code === undefined || error.code === code);
}

/** Returns `error` as one of ours: any other becomes `internal`, or `fallback`, with the original as its cause. */
export function asBasetideError(error: unknown, fallback: ErrorCode = "internal"): BasetideError {
  if (error instanceof BasetideError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new BasetideError(fallback, message, { cause: error });
}
