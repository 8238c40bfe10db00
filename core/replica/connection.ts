/**
 * Connections to a replica's database, and its errors in our codes.
 *
 * int8 (tickets, epochs) arrives as a number: both are counters that stay far below 2^53.
 */
import postgres, { type Sql } from "postgres";
import { BasetideError, type ErrorCode, isBasetideError } from "../errors";
import { GATEWAY_SEVERITY } from "../external/messages";
import type { ServerUrl } from "../external/server";
import { TRANSACTION_POOLED } from "../postgres/transaction-pooled";
import { connectServer, type SessionOptions } from "../postgres-client";
import { WATCHED_BY_SERVER } from "../postgres-line";
import { quoteIdent } from "./naming";
import { refusal } from "./refusal";

export type ReplicaSql = Sql<{ bigint: number }>;

/** Connections per base: the sync's one writer, a second for what runs beside it. */
const MAX_CONNECTIONS = 3;
/** Seconds: a base that sweeps keeps its connection, one that is paused lets go of it. */
const IDLE_TIMEOUT = 90;
const CONNECT_TIMEOUT = 10;
/**
 * Ours hold a lock for the time of one statement. Where the server's admin cannot keep customers from advisory locks
 * (managed servers), one who takes ours delays their own base, and must not keep a worker waiting for ever.
 */
const LOCK_TIMEOUT_MS = 30_000;
/**
 * Of every connection with more rights than the customer's: in a writable database the customer can make functions,
 * and one with a name and arguments that fit ours better than Postgres' own would run with those rights.
 */
export const SAFE_SEARCH_PATH = "pg_catalog, pg_temp";

/** A small pool on one replica database, as its owner. */
export function connectReplica(url: ServerUrl, session?: SessionOptions): ReplicaSql {
  const options = {
    max: MAX_CONNECTIONS,
    idle_timeout: IDLE_TIMEOUT,
    connect_timeout: CONNECT_TIMEOUT,
    onnotice: () => {},
    connection: {
      application_name: "basetide",
      search_path: SAFE_SEARCH_PATH,
      lock_timeout: LOCK_TIMEOUT_MS,
      ...WATCHED_BY_SERVER,
    },
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  };
  return connectServer(url, options, session);
}

/** The two schemas of a replica, quoted for use in SQL text. */
export interface Schemas {
  schema: string;
  swap: string;
}

/** `public` → `"public"` and `"public_swap"`. */
export function schemasOf(schema: string): Schemas {
  return { schema: quoteIdent(schema), swap: quoteIdent(`${schema}_swap`) };
}

/** SQLSTATE → our code. The BT classes are raised by the functions of `sql/replica`. */
const codeBySqlState: Record<string, ErrorCode> = {
  BT001: "lease_lost",
  BT002: "shape_changed",
  BT003: "destination_invalid",
  "55P03": "replica_busy",
  "40P01": "replica_busy",
  // Somebody is connected to a database that is to go.
  "55006": "replica_busy",
  // A name that was free when it was chosen: the customer of a writable database has taken it.
  "42P07": "shape_changed",
  "42710": "shape_changed",
  [TRANSACTION_POOLED]: "destination_invalid",
  // The database was dropped.
  "3D000": "replica_unavailable",
};
const NO_RIGHT = "42501";
/** SQLSTATE classes of a server that cannot serve just now: connection, resources, operator intervention. */
const UNAVAILABLE_CLASSES = ["08", "53", "57", "58"];

/** An error from a replica's connection as one of ours; a fault in our own SQL stays `internal`. */
export function replicaError(error: unknown): BasetideError {
  if (isBasetideError(error)) return error;
  const state = String((error as { code?: unknown } | null)?.code ?? "");
  const message = error instanceof Error ? error.message : String(error);
  const isServerError = error instanceof postgres.PostgresError && error.severity !== GATEWAY_SEVERITY;
  const known = codeBySqlState[state];
  const isAway = !isServerError || UNAVAILABLE_CLASSES.includes(state.slice(0, 2));
  const refused = !known && !isAway ? refusal(error) : null;
  const details = { sqlState: state };
  if (refused) return new BasetideError("replica_refused", refused, { cause: error, details });
  if (state === NO_RIGHT)
    return new BasetideError("destination_invalid", denied(message), { cause: error, details });
  const code = known ?? (isAway ? "replica_unavailable" : "internal");
  // Those are written for people.
  const text = code === "destination_invalid" ? message : `Replica: ${message}`;
  return new BasetideError(code, text, { cause: error, details });
}

/** @param message the server's, which names what was denied */
function denied(message: string): string {
  return `The server denies Basetide's role what it needs there: ${message}. Grant it to the role, or take a schema that the role owns`;
}

/** Runs `work`, with its errors as ours. */
export async function onReplica<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw replicaError(error);
  }
}
