/**
 * Every error that Basetide raises on purpose: one class, a closed list of codes.
 *
 * Each code has its cause and remedy here, the job loop's next step (`nextStep`) and the HTTP status of an app's answer
 * (`httpStatus`). All three tables are total: a new code does not compile until all of them include it.
 */

import { scrub } from "./scrub";

/** Code → its cause, one sentence, and then its remedy, as users read them. `docs/errors.md` is generated from it. */
export const errorCodes = {
  // The source (Airtable) and connections to it
  source_key_refused: "Airtable rejected the API key. Add a new key.",
  source_forbidden:
    "The API key cannot read this base, lacks a scope, or the base no longer exists. Give the key access to the base, or add the missing scope.",
  source_not_found:
    "This base, table or record no longer exists in Airtable. Restore it there, or delete the base in Basetide.",
  source_rate_limited: "Airtable asked for a pause (429). Syncing resumes automatically after 30 seconds.",
  source_billing_limit:
    "Airtable's monthly limit of API calls is reached. Upgrade the plan, or wait until the month ends.",
  source_unavailable:
    "Airtable could not be reached or answered with a 5xx error. Basetide retries automatically.",
  source_timeout: "Airtable did not answer in time. Basetide retries automatically.",
  source_bad_answer:
    "Airtable sent an unexpected response (broken JSON, HTML, an endless list). Basetide retries automatically.",
  source_iterator_lost: "Airtable lost the position in a list. Basetide re-reads the table from the start.",
  source_schema_changed: "A requested table or field no longer exists. Basetide reads the schema again.",
  source_rejected: "Airtable rejected the request as invalid. Basetide retries automatically.",
  view_gone:
    "The view whose records are copied no longer exists in Airtable. The table keeps its rows. Choose another view, or all records, on the page Copied data.",
  // Syncing
  lease_lost: "Another worker took over this base. The other worker continues; nothing needs to be done.",
  shape_changed: "The table's columns changed after the rows were prepared. Basetide prepares them again.",
  sync_stopped: "The sync was stopped (shutdown, pause or delete). It continues when syncing starts again.",
  sync_crashed:
    "Syncing this base crashed or froze its process several times. Basetide retries after increasing delays. Check its database, or move the base to another one, then click Resync.",
  // The replica
  replica_unavailable: "The base's database cannot be reached. Basetide retries automatically.",
  replica_busy:
    "A table could not be changed because queries have locked it. Basetide retries automatically.",
  replica_refused:
    "An object that Basetide did not create (a constraint, a trigger, an event trigger, or one whose name a table needs) prevents the update or the change of a table; the message names it. Relax, rename or drop it, and the table's sync resumes automatically.",
  needs_attention:
    "A table cannot get its new columns: it has no room for another one, a column of yours has the name of one, or its primary key is missing. Its rows stay up to date as it is. Run the statement in the message; Basetide then changes the table by itself.",
  destination_invalid:
    "The destination database cannot be used; the message says what is missing. Add it, then try again.",
  query_failed: "Postgres rejected the query; the message says why. Correct the query and run it again.",
  query_stopped:
    "The query was stopped: it was cancelled, or it exceeded the limit that the message names. Narrow it down, or run it with your own SQL client.",
  // The control plane
  control_unavailable: "The control-plane database cannot be reached. Basetide retries automatically.",
  secret_unreadable:
    "A stored secret cannot be decrypted with SECRET_KEY. Restore the key that encrypted it.",
  // The quota
  quota_timeout: "The base's rate limit had no free request in time. Retry later.",
  budget_spent:
    "Sync has used its share of this month's call budget; your apps can still call. Syncing resumes when you raise the budget or the month ends.",
  // The management API
  unauthorized: "The request has no valid API token. Send `Authorization: Bearer <token>`.",
  invalid_credentials: "E-mail or password is incorrect. Correct it, or reset the password.",
  forbidden:
    "This account does not have permission to do that. Ask its owner for the role, or use a token with the scope.",
  not_found:
    "Not found, or it belongs to another account. Check the id, and the account that the token belongs to.",
  rate_limited: "Too many requests or attempts. Retry after the number of seconds in Retry-After.",
  invalid_request:
    "The request is invalid; the message names the part. Correct it and send the request again.",
  unsupported_media_type: "The body is not JSON. Send it with `content-type: application/json`.",
  method_not_allowed: "This address exists, but not with this method. The header Allow lists its methods.",
  malformed_request:
    "The request's target or Host header is not in its normal form. Send a normalized path and a valid Host.",
  body_too_large: "The request's body is larger than 1 MB. Send less at once.",
  body_late:
    "The request's body arrived too slowly: its first 10 seconds are free, then it must arrive at 64 kB/s. Send it again over a faster connection.",
  busy: "This process is receiving as many request bodies as its memory allows. Retry after the number of seconds in Retry-After.",
  already_exists: "Already exists. Use what is there, or choose another name.",
  conflict:
    "The current state does not allow this; the message says why. Change the state first, or try again later.",
  // Start
  config_invalid:
    "An environment variable has an invalid value; the message names each one. Correct it and start again.",
  port_taken: "Another program is using the port. Stop it, or set another port.",
  postgres_failed:
    "The embedded Postgres did not start; the message contains its last output. Remove the cause and start again.",
  internal: "Internal error in Basetide. Try again; the log has the details under the request id.",
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
  view_gone: "check_schema",
  lease_lost: "stop",
  shape_changed: "check_schema",
  sync_stopped: "stop",
  sync_crashed: "needs_attention",
  replica_unavailable: "retry",
  replica_busy: "retry",
  replica_refused: "retry",
  needs_attention: "retry",
  destination_invalid: "needs_attention",
  query_failed: "stop",
  query_stopped: "stop",
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
  unsupported_media_type: "stop",
  method_not_allowed: "stop",
  malformed_request: "stop",
  body_too_large: "stop",
  body_late: "stop",
  busy: "stop",
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
  view_gone: 422,
  lease_lost: 409,
  shape_changed: 409,
  sync_stopped: 409,
  sync_crashed: 503,
  replica_unavailable: 503,
  replica_busy: 503,
  replica_refused: 503,
  needs_attention: 503,
  destination_invalid: 422,
  query_failed: 422,
  query_stopped: 422,
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
  unsupported_media_type: 415,
  method_not_allowed: 405,
  malformed_request: 400,
  body_too_large: 413,
  body_late: 408,
  busy: 503,
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

/** The errors that people and their programs cause most: the message says what is wrong, and what to do. */
export function invalid(message: string): BasetideError {
  return new BasetideError("invalid_request", message);
}

export function conflict(message: string): BasetideError {
  return new BasetideError("conflict", message);
}

export function notFound(message: string): BasetideError {
  return new BasetideError("not_found", message);
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
