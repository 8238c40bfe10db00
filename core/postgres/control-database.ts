/** Connects to the control plane, maps its errors to our codes, and runs work that only one process may do at a time. */

import postgres from "postgres";
import type { Db } from "../context";
import { cutText } from "../cut-text";
import { asBasetideError, BasetideError, invalid } from "../errors";
import { ARRAY_TYPES } from "./array-types";
import { connectServer, type SessionOptions } from "./client";
import { CERTIFICATE_CODES, isConnectionError, isNotWritable, TransactionPooled } from "./errors";
import { WATCHED_BY_SERVER } from "./options";
import { CONTROL_SETTINGS } from "./session-settings";

/** Of what people name, characters. */
const MAX_NAME_LENGTH = 100;
/** Of what they write, and of messages of others that are stored. */
const MAX_TEXT_LENGTH = 2000;
/** Connections per process: enough for its concurrent requests, few enough for a fleet on one server. */
const POOL_SIZE = 10;
/** How long the control plane may take to accept a connection. */
export const CONTROL_CONNECT_SECONDS = 5;
export const IDLE_TIMEOUT_SECONDS = 60;

const READ_ONLY_MESSAGE =
  "The control plane's server accepts no writes: it is a standby or read-only. Basetide retries automatically and resolves the host name again.";

/** Creates a pool on the control plane; connections are opened when the first query needs them. */
export function connectControl(url: string, options: { max?: number } & SessionOptions = {}): Db {
  const { max = POOL_SIZE, ...session } = options;
  const pool = {
    max,
    connect_timeout: CONTROL_CONNECT_SECONDS,
    idle_timeout: IDLE_TIMEOUT_SECONDS,
    onnotice: () => {},
    types: ARRAY_TYPES,
    fetch_types: false,
    connection: { application_name: "basetide", ...CONTROL_SETTINGS, ...WATCHED_BY_SERVER },
  };
  return connectServer(url, pool, session);
}

/** SQLSTATE 23505, for the given constraint or index, if any. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return isViolation(error, "23505", constraint);
}

/** SQLSTATE 23503, for the given constraint. */
export function isForeignKeyViolation(error: unknown, constraint: string): boolean {
  return isViolation(error, "23503", constraint);
}

function isViolation(error: unknown, state: string, constraint: string | undefined): boolean {
  return (
    error instanceof postgres.PostgresError &&
    error.code === state &&
    (constraint === undefined || error.constraint_name === constraint)
  );
}

/** SQLSTATE for a text that contains NUL, which Postgres cannot store. */
const UNSTORABLE_STATE = "22021";

/**
 * Like `asBasetideError`, but a lost control plane becomes `control_unavailable`. Text with a NUL gets here if a lookup
 * uses a caller's input unchanged: nothing has such a name.
 */
export function asControlError(error: unknown): BasetideError {
  if (error instanceof postgres.PostgresError && error.code === UNSTORABLE_STATE) {
    return new BasetideError("invalid_request", "The text contains the NUL character", { cause: error });
  }
  if (error instanceof TransactionPooled) {
    return new BasetideError("config_invalid", `DATABASE_URL: ${error.message}`, { cause: error });
  }
  if (!isConnectionError(error)) return asBasetideError(error);
  const message = isNotWritable(error) ? READ_ONLY_MESSAGE : untrusted(error);
  return new BasetideError("control_unavailable", message, { cause: error });
}

/**
 * Checks that the control plane accepts writes.
 *
 * @throws BasetideError `control_unavailable`
 */
export async function requireWritable(db: Db): Promise<void> {
  const [row] = await db<{ is_read_only: boolean }[]>`
    select current_setting('transaction_read_only')::boolean as is_read_only`;
  if (row!.is_read_only) throw new BasetideError("control_unavailable", READ_ONLY_MESSAGE);
}

/** Returns a message with the remedy if the error is about a certificate; otherwise undefined. */
function untrusted(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  if (!CERTIFICATE_CODES.includes(String(error.code))) return undefined;
  const remedy = "Set NODE_EXTRA_CA_CERTS to a file with its certificate authority";
  return `The certificate of the control plane's server cannot be trusted: ${error.message}. ${remedy}.`;
}

/**
 * Returns `value` as JSON text that Postgres accepts: it allows neither NUL nor unpaired surrogates, and names and
 * cells of the source may contain both. Use as `${jsonParameter(value)}::text::jsonb`.
 */
export function jsonParameter(value: unknown): string {
  return JSON.stringify(value, (_key, part) => (typeof part === "string" ? cleanText(part) : part));
}

/** Returns `text` without characters that Postgres cannot store. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "");
}

/**
 * Returns a name that a person has given, in one line.
 *
 * @param what it names, such as `A workspace`
 * @throws BasetideError `invalid_request` if it is empty or too long
 */
export function checkedName(text: string, what: string): string {
  const name = cleanText(text).replace(/\s+/g, " ").trim();
  if (name !== "" && name.length <= MAX_NAME_LENGTH) return name;
  throw invalid(`${what}'s name must have 1 to ${MAX_NAME_LENGTH} characters`);
}

/** Returns a text that a person has written. @param what it is. @throws BasetideError `invalid_request` if it is too long */
export function checkedText(text: string, what: string): string {
  const clean = cleanText(text).trim();
  if (clean.length <= MAX_TEXT_LENGTH) return clean;
  throw invalid(`${what} has more than ${MAX_TEXT_LENGTH} characters`);
}

/** Returns a message of a server, a source or an error as it is stored. */
export function storedMessage(text: string): string {
  return cutText(cleanText(text), MAX_TEXT_LENGTH);
}

/**
 * Runs `work` exclusively under `key`. @returns null, without running it, if another process is already running work
 */
export async function asOnly<T>(db: Db, key: string, work: () => Promise<T>): Promise<{ result: T } | null> {
  // A session lock: however this process ends, the lock is released.
  const lock = await db.reserve();
  try {
    const [taken] = await lock<{ is_mine: boolean }[]>`
      select pg_try_advisory_lock(hashtextextended(${key}, 0)) as is_mine`;
    if (!taken!.is_mine) return null;
    try {
      return { result: await work() };
    } finally {
      await lock`select pg_advisory_unlock(hashtextextended(${key}, 0))`.catch(() => {});
    }
  } finally {
    lock.release();
  }
}
