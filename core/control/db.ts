/** The connection to the control plane, and what its failures are called. */
import postgres from "postgres";
import type { Db } from "../context";
import { asBasetideError, BasetideError } from "../errors";
import { CONTROL_SETTINGS } from "../postgres/session-settings";
import { TransactionPooled } from "../postgres/transaction-pooled";
import { connectServer, type SessionOptions } from "../postgres-client";
import { WATCHED_BY_SERVER } from "../postgres-line";

/** Connections of one process: enough for its requests at once, few enough for a fleet on one server. */
const POOL_SIZE = 10;
const CONNECT_TIMEOUT_SECONDS = 5;
const IDLE_TIMEOUT_SECONDS = 60;

/** What TLS calls a certificate that is not the server's, or not from whom we trust. */
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

/** What postgres.js and the operating system call a connection that was not made, or broke. */
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
/** SQLSTATEs of a server that takes no work: class 08, shutting down or starting, full, refusing the log-in. */
const UNAVAILABLE_STATE = /^(08...|57P0[1-5]|53300|28...|3D000)$/;

/** A pool on the control plane; connections are made when the first query needs them. */
export function connectControl(url: string, options: { max?: number } & SessionOptions = {}): Db {
  const { max = POOL_SIZE, ...session } = options;
  const pool = {
    max,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    idle_timeout: IDLE_TIMEOUT_SECONDS,
    onnotice: () => {},
    connection: { application_name: "basetide", ...CONTROL_SETTINGS, ...WATCHED_BY_SERVER },
  };
  return connectServer(url, pool, session);
}

/** Did a Postgres driver throw this because there was no server to work with, rather than because of the work? */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return CONNECTION_CODES.has(code) || UNAVAILABLE_STATE.test(code);
}

/** SQLSTATE 23505, on that constraint or index if one is named. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return (
    error instanceof postgres.PostgresError &&
    error.code === "23505" &&
    (constraint === undefined || error.constraint_name === constraint)
  );
}

/** SQLSTATE of a text that holds a NUL: a byte that Postgres has no place for. */
const UNSTORABLE_STATE = "22021";

/**
 * Like `asBasetideError`, and a lost control plane is called `control_unavailable`. Text with a NUL gets as far as
 * here where a caller's words are looked for as they came: nothing is called that.
 */
export function asControlError(error: unknown): BasetideError {
  if (error instanceof postgres.PostgresError && error.code === UNSTORABLE_STATE) {
    return new BasetideError("invalid_request", "A text holds the character NUL", { cause: error });
  }
  if (error instanceof TransactionPooled) {
    return new BasetideError("config_invalid", `DATABASE_URL: ${error.message}`, { cause: error });
  }
  if (!isConnectionError(error)) return asBasetideError(error);
  return new BasetideError("control_unavailable", untrusted(error), { cause: error });
}

/** That a certificate is the reason, and the remedy; undefined for any other. */
function untrusted(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  if (!CERTIFICATE_CODES.includes(String(error.code))) return undefined;
  const remedy = "NODE_EXTRA_CA_CERTS names a file with further authorities";
  return `The certificate of the control plane's server cannot be trusted: ${error.message}. ${remedy}.`;
}

/**
 * `value` as JSON text that Postgres takes: it knows neither NUL nor half a surrogate pair, and names and cells of
 * the source may hold both. Use as `${jsonText(value)}::text::jsonb`.
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, part) => (typeof part === "string" ? cleanText(part) : part));
}

/** `text` without what Postgres cannot store. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "");
}
