/**
 * Connects to a replica's database and translates its errors to our codes.
 *
 * int8 (read versions, epochs) arrives as a number: both are counters that stay far below 2^53.
 */
import postgres, { type Sql } from "postgres";
import { BasetideError, type ErrorCode, isBasetideError } from "../errors";
import type { ServerUrl } from "../external";
import {
  ARRAY_TYPES,
  CONNECT_SECONDS,
  isServerFailure,
  TRANSACTION_POOLED,
  WATCHED_BY_SERVER,
} from "../postgres";
import { quoteIdent } from "./naming";
import { refusal } from "./refusal";
import { type ServerPoolOptions, type ServerUse, serverPool } from "./server-pools";

export type ReplicaSql = Sql<{ bigint: number }>;

/** Connections per base: one, and a second for a statement that has waited GROW_AFTER_MS for that one. */
export const BASE_CONNECTIONS = 2;
const GROW_AFTER_MS = 250;
/** Seconds. */
const IDLE_TIMEOUT = 8;
/**
 * Longer for sync: a sweep of 10,000 unchanged records takes 33 s between its first statement and its last, and would need
 * a login. When many bases start at once, all sweeps are slow, and logins would make them slower. A base that comes to
 * rest, and a lease that ends, close their connections at once. And for writes to a customer's server: a proxied write
 * waits so briefly that a login would use most of the time.
 */
const LONG_IDLE_TIMEOUT = 60;
/**
 * Our own locks last for one statement. A customer who locks one table, or takes one of our advisory locks where the
 * server's admin cannot forbid that (managed servers), must not use a connection that other tables wait for: they go on,
 * and this one is tried again. A proxied write learns in time that only its table is locked.
 */
const LOCK_TIMEOUT_MS = 2000;
/**
 * A replica that does not answer a proxied call within this time counts as unreachable, ms; a change locks a table for less.
 * Where the call only reads, the server itself ends its statement then: a client's formula may take any time.
 */
export const LONGEST_ANSWER_MS = 3000;
/**
 * The search path of every connection that has more rights than the customer's. In a writable database the customer can
 * create functions, and one whose arguments fit better than those of Postgres' own function would run with our rights.
 */
export const SAFE_SEARCH_PATH = "pg_catalog, pg_temp";

const TYPES = { ...ARRAY_TYPES, bigint: { to: 20, from: [20], parse: Number, serialize: String } };

/** Opens a small pool on one replica database, as its owner. Its connections count in the budget of the server. */
export function connectReplica(url: ServerUrl, options: Partial<ServerPoolOptions> = {}): ReplicaSql {
  return replicaPool(url, options).sql;
}

function idleSeconds(use: ServerUse, isExternal: boolean): number {
  return use === "sync" || (isExternal && use === "writes") ? LONG_IDLE_TIMEOUT : IDLE_TIMEOUT;
}

/**
 * Like `connectReplica`, with what `serverPool` returns besides.
 *
 * @param options.isOnce it is for a single statement
 */
export function replicaPool(
  url: ServerUrl,
  { use = "sync", isOnce = false, ...session }: Partial<ServerPoolOptions> & { isOnce?: boolean } = {},
): { sql: ReplicaSql } & Omit<ReturnType<typeof serverPool>, "sql"> {
  const options = {
    max: isOnce ? 1 : BASE_CONNECTIONS,
    fetch_types: false,
    idle_timeout: idleSeconds(use, typeof url !== "string"),
    connect_timeout: CONNECT_SECONDS,
    onnotice: () => {},
    connection: {
      application_name: "basetide",
      search_path: SAFE_SEARCH_PATH,
      lock_timeout: LOCK_TIMEOUT_MS,
      ...(use === "reads" ? { statement_timeout: LONGEST_ANSWER_MS } : {}),
      ...WATCHED_BY_SERVER,
    },
    types: TYPES,
    grow_after: GROW_AFTER_MS,
    // A lease begins with about twenty statements, most of which it does not repeat. A proxied write prepares each statement at
    // once: it would wait for another round trip when it repeats one.
    prepare_repeated: use === "sync",
  };
  return serverPool(url, options, { use, ...session });
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

/** Raised by `fence`: the server is not the one that the lease began on, or it was restored. */
const OTHER_TIMELINE = "BT006";
/** Raised by `may_change`: a session is reading the catalog of tables that are about to change. */
export const CATALOG_READ = "BT007";

/** SQLSTATE → our code. The BT classes are raised by the functions of `sql/replica`. */
const codeBySqlState: Record<string, ErrorCode> = {
  BT001: "lease_lost",
  BT002: "shape_changed",
  BT003: "destination_invalid",
  [OTHER_TIMELINE]: "lease_lost",
  "55P03": "replica_busy",
  "40P01": "replica_busy",
  "40001": "replica_busy",
  [CATALOG_READ]: "replica_busy",
  // Another session is connected to a database that is being dropped.
  "55006": "replica_busy",
  // A name was free when we chose it, and the customer has taken it since: a new plan chooses another one.
  "42P07": "shape_changed",
  "42710": "shape_changed",
  [TRANSACTION_POOLED]: "destination_invalid",
};
const NO_RIGHT = "42501";

/** Translates an error of a replica's connection to one of ours. An error in our own SQL stays `internal`. */
export function replicaError(error: unknown): BasetideError {
  if (isBasetideError(error)) return error;
  const state = String((error as { code?: unknown } | null)?.code ?? "");
  const message = error instanceof Error ? error.message : String(error);
  const known = codeBySqlState[state];
  const isAway = isServerFailure(error);
  // A function of the customer's may raise any state. Those of locks mean the same there as in ours.
  const mayBeRefused = known !== "replica_busy" && error instanceof postgres.PostgresError;
  const refused = mayBeRefused ? refusal(error) : null;
  const details = { sqlState: state };
  if (refused) return new BasetideError("replica_refused", refused, { cause: error, details });
  if (state === NO_RIGHT)
    return new BasetideError("destination_invalid", denied(message), { cause: error, details });
  const code = known ?? (isAway ? "replica_unavailable" : "internal");
  // These messages are written for people.
  const text = code === "destination_invalid" ? message : `Replica: ${message}`;
  return new BasetideError(code, text, { cause: error, details });
}

/** @param message the server's message, which names what was denied */
function denied(message: string): string {
  return `The server denies a privilege that Basetide's role needs: ${message}. Grant it to the role, or use a schema that the role owns`;
}

/** Returns whether the lease was lost because the server changed, not because another worker took it. */
export function isOtherTimeline(error: unknown): boolean {
  return isBasetideError(error, "lease_lost") && error.details.sqlState === OTHER_TIMELINE;
}

/**
 * The same for a statement that needs only one table.
 *
 * @throws BasetideError `replica_busy` with the detail `isOfRows` if another transaction locks the table or its rows
 */
export async function onTable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await onReplica(work);
  } catch (error) {
    if (!isBasetideError(error, "replica_busy")) throw error;
    const { code, message, details } = error;
    throw new BasetideError(code, message, { cause: error, details: { ...details, isOfRows: true } });
  }
}

/** Returns the value of a statement that has one row with one `value`. */
export function readValue<T>(statement: () => PromiseLike<{ value: T }[]>): Promise<T> {
  return onReplica(async () => (await statement())[0]!.value);
}

/** Runs `work` and translates its errors to ours. */
export async function onReplica<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw replicaError(error);
  }
}
