/**
 * Tells what an error of a Postgres driver says about its server. Only this module classifies SQLSTATEs and the codes
 * of broken connections. The code that runs a statement interprets the statement's own SQLSTATEs.
 */
import { GATEWAY_SEVERITY } from "../external";

export const TRANSACTION_POOLED = "TRANSACTION_POOLED";

/** A pooler spreads the statements of a connection over several server connections. */
export class TransactionPooled extends Error {
  readonly code = TRANSACTION_POOLED;

  constructor(remedy = "Connect to the server directly, or to a pooler in session mode") {
    super(
      `A pooler in transaction mode is in front of the server: it does not preserve session locks, settings and notifications. ${remedy}`,
    );
  }
}

/** TLS error codes: the certificate does not match the server, or is not from an authority that we trust. */
export const CERTIFICATE_CODES = [
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "CERT_REVOKED",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "INVALID_CA",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
];

/** Codes of postgres.js and of the operating system for a connection that failed to open, or broke. */
const CONNECTION_CODES = new Set([
  ...CERTIFICATE_CODES,
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/** SQLSTATEs of a server that accepts no work: class 08, shutting down or starting, full, refusing the login. */
const UNAVAILABLE_STATE = /^(08...|57P0[1-5]|53300|28...|3D000)$/;

/** SQLSTATE classes of a server that currently cannot run a statement: connection, resources, operator, system. */
const OVERLOADED_CLASS = /^(08|53|57|58)/;

/** read_only_sql_transaction: a standby, or a server whose transactions are read-only by default. */
const READ_ONLY_STATE = "25006";
/** feature_not_supported, object_not_in_prerequisite_state: only the message tells that the server is a standby. */
const RECOVERY_STATES = new Set(["0A000", "55000"]);

/**
 * Does the server reject writes: a primary that was demoted, a standby that is not promoted yet, or a read-only server?
 * Every connection to it must be closed: its host's name may resolve to another server by now.
 */
export function isNotWritable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = codeOf(error);
  return state === READ_ONLY_STATE || (RECOVERY_STATES.has(state) && /\brecovery\b/.test(error.message));
}

/** Did a Postgres driver throw this because no server was available, rather than because of the statement? */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return CONNECTION_CODES.has(code) || UNAVAILABLE_STATE.test(code) || isNotWritable(error);
}

/**
 * As `isConnectionError`, plus all errors that say nothing about the statement: no answer, a full disk, the gateway.
 */
export function isServerFailure(error: unknown): boolean {
  if (isConnectionError(error)) return true;
  return !isFromServer(error) || OVERLOADED_CLASS.test(codeOf(error));
}

/** An ErrorResponse of the server itself, not of our gateway or of the driver. */
function isFromServer(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "PostgresError") return false;
  return "severity" in error && error.severity !== GATEWAY_SEVERITY;
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code ?? "");
}
