/** The connection to the control plane, and what its failures are called. */
import postgres from "postgres";
import type { Db } from "../context";
import { asBasetideError, BasetideError } from "../errors";

/** Connections of one process: enough for its requests at once, few enough for a fleet on one server. */
const POOL_SIZE = 10;
const CONNECT_TIMEOUT_SECONDS = 5;
const IDLE_TIMEOUT_SECONDS = 60;

/** What postgres.js and the operating system call a connection that was not made, or broke. */
const CONNECTION_CODES = new Set([
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
export function connectControl(url: string, options: { max?: number } = {}): Db {
  return postgres(url, {
    max: options.max ?? POOL_SIZE,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    idle_timeout: IDLE_TIMEOUT_SECONDS,
    onnotice: () => {},
    connection: { application_name: "basetide" },
  });
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

/** Like `asBasetideError`, and a lost control plane is called `control_unavailable`. */
export function asControlError(error: unknown): BasetideError {
  if (!isConnectionError(error)) return asBasetideError(error);
  return new BasetideError("control_unavailable", undefined, { cause: error });
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
