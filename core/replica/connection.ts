/**
 * Connections to a replica's database, and its errors in our codes.
 *
 * int8 (read versions, epochs) arrives as a number: both are counters that stay far below 2^53.
 */
import postgres, { type Sql } from "postgres";
import { BasetideError, type ErrorCode, isBasetideError } from "../errors";
import type { ServerUrl } from "../external";
import {
  connectServer,
  isServerFailure,
  type SessionOptions,
  TRANSACTION_POOLED,
  WATCHED_BY_SERVER,
} from "../postgres";
import { type BudgetedPool, ConnectionBudget } from "./connection-budget";
import { quoteIdent } from "./naming";
import { refusal } from "./refusal";

export type ReplicaSql = Sql<{ bigint: number }>;

/** Connections per base: one, and a second for a statement that has waited GROW_AFTER_MS for that one. */
const MAX_CONNECTIONS = 2;
const GROW_AFTER_MS = 250;
/** Seconds: a base that sweeps takes a read version a second, and keeps its connection; one at rest lets go of it. */
const IDLE_TIMEOUT = 8;
/** A write to a customer's server is waited for so shortly that a login would be most of it. */
const EXTERNAL_WRITES_IDLE_TIMEOUT = 90;
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

/**
 * Parts of a server's max_connections: for all workers together to sync, and for one process to show proxied writes. Of a
 * customer's own server, which holds few bases and has other applications, less.
 */
const SHARES = { sync: 0.3, writes: 0.1 };
const EXTERNAL_SHARES = { sync: 0.1, writes: 0.05 };
export type ReplicaUse = keyof typeof SHARES;

/** By use, host and port. */
const budgets = new Map<string, ConnectionBudget>();

/** Workers that sync, this one among them. */
let workers = 1;

/** Has the connections of each server shared out among so many workers. */
export function shareServers(count: number): void {
  workers = Math.max(1, count);
}

/** A small pool on one replica database, as its owner. What it has open counts in the budget of its server. */
export function connectReplica(
  url: ServerUrl,
  options: SessionOptions & { use?: ReplicaUse } = {},
): ReplicaSql {
  return replicaPool(url, options).sql;
}

/** As `connectReplica`; `isConnected` tells whether a statement would go without a login. */
export function replicaPool(
  url: ServerUrl,
  { use = "sync", onSession, ...session }: SessionOptions & { use?: ReplicaUse } = {},
): { sql: ReplicaSql; isConnected: () => boolean } {
  const budget = budgetOf(url, use);
  const sockets = new Set<object>();
  const own = {
    ...(typeof url !== "string" && use === "writes" ? { idle_timeout: EXTERNAL_WRITES_IDLE_TIMEOUT } : {}),
    onclose() {
      budget.forget(pool);
      budget.give();
    },
    onidle: () => budget.rests(pool),
  };
  const sql = openPool(url, own, {
    ...session,
    gate: budget,
    onSession(opened, connection) {
      budget.opened();
      for (const socket of sockets) if (isClosed(socket)) sockets.delete(socket);
      sockets.add(connection.socket);
      onSession?.(opened, connection);
    },
  });
  const pool: BudgetedPool = {
    closeIdle: () => (sql as unknown as { closeIdle(): number }).closeIdle(),
    async serverMost() {
      const [row] = await sql<{ most: number }[]>`select current_setting('max_connections')::int as most`;
      return row!.most;
    },
  };
  return { sql, isConnected: () => [...sockets].some((socket) => !isClosed(socket)) };
}

function isClosed(socket: object): boolean {
  return (socket as { destroyed?: boolean }).destroyed === true;
}

function budgetOf(url: ServerUrl, use: ReplicaUse): ConnectionBudget {
  const isOwn = typeof url === "string";
  const name = isOwn
    ? `${use} ${new URL(url).host}`
    : `${use} of a customer ${url.address.host}:${url.address.port}`;
  const known = budgets.get(name);
  if (known) return known;
  const sharers = use === "sync" ? () => workers : undefined;
  const budget = new ConnectionBudget((isOwn ? SHARES : EXTERNAL_SHARES)[use], { sharers });
  budgets.set(name, budget);
  return budget;
}

/** @param own options of this pool, which go before those of all */
function openPool(url: ServerUrl, own: object, session: SessionOptions): ReplicaSql {
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
    grow_after: GROW_AFTER_MS,
    ...own,
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

/** The server is another one than when the lease began, or was restored: raised by `fence`. */
const OTHER_TIMELINE = "BT006";
/** A session lists tables that were about to change: raised by `may_change`. */
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
  // Somebody is connected to a database that is to go.
  "55006": "replica_busy",
  // A name that was free when it was chosen: the customer of a writable database has taken it.
  "42P07": "shape_changed",
  "42710": "shape_changed",
  [TRANSACTION_POOLED]: "destination_invalid",
};
const NO_RIGHT = "42501";

/** An error from a replica's connection as one of ours; a fault in our own SQL stays `internal`. */
export function replicaError(error: unknown): BasetideError {
  if (isBasetideError(error)) return error;
  const state = String((error as { code?: unknown } | null)?.code ?? "");
  const message = error instanceof Error ? error.message : String(error);
  const known = codeBySqlState[state];
  const isAway = isServerFailure(error);
  const refused = !known && !isAway && error instanceof postgres.PostgresError ? refusal(error) : null;
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

/** Was the lease lost to no other worker, but with the server that it began on? */
export function isOtherTimeline(error: unknown): boolean {
  return isBasetideError(error, "lease_lost") && error.details.sqlState === OTHER_TIMELINE;
}

/** Runs `work`, with its errors as ours. */
export async function onReplica<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw replicaError(error);
  }
}
