/**
 * Creates every pool on a server of replicas: ours or a customer's. The connections of a pool count in the budget that
 * this process has for their purpose on that server, and a statement waits if the server is full.
 */
import type { Options, PostgresType } from "postgres";
import type { ExternalServer, ServerUrl } from "../external";
import { connectServer, type SessionOptions } from "../postgres";
import { type BudgetedPool, ConnectionBudget, type ConnectionLimit } from "./connection-budget";

/**
 * `sync`: reading and writing the rows of bases, for all workers together. `writes`: showing proxied writes. `reads`: answering
 * clients' reads, which may take long and must not keep writes waiting. `admin`:
 * creating, checking and changing databases and roles. `outbox`: hearing of queued SQL writes, which keeps a connection for
 * each base; with more of them, bases take turns. `watchdog`: separate from `admin`, because what it ends may be
 * what blocks an admin's statement. `console`: people who read their rows in the console, with their own roles.
 * `query`: SQL that customers write there.
 */
export type ServerUse = "sync" | "writes" | "reads" | "outbox" | "admin" | "watchdog" | "console" | "query";

/** How long a check waits for a free connection: after that, the result is that there is none, ms. */
const CHECK_PATIENCE_MS = 8000;

/**
 * Connections for each of the two ways in which people read their databases in the console, and for the proxy's answers to
 * reads. One account gets at most half of them, whatever it opens (`core/data-browser`, `core/sql-editor`, `core/proxy`).
 */
export const READER_CONNECTIONS = 6;

/** Shares are fractions of the server's max_connections. */
const LIMITS: Record<ServerUse, ConnectionLimit> = {
  sync: { share: 0.3 },
  writes: { share: 0.1 },
  reads: { connections: READER_CONNECTIONS },
  outbox: { share: 0.1 },
  admin: { connections: 8 },
  watchdog: { connections: 1 },
  console: { connections: READER_CONNECTIONS },
  query: { connections: READER_CONNECTIONS },
};
/** Smaller on a customer's own server, which holds few bases and serves other applications. */
const EXTERNAL_LIMITS: Record<ServerUse, ConnectionLimit> = {
  sync: { share: 0.1 },
  writes: { share: 0.05 },
  reads: { connections: 2 },
  outbox: { share: 0.05 },
  admin: { connections: 2 },
  watchdog: { connections: 1 },
  console: { connections: 2 },
  query: { connections: 2 },
};

/**
 * From then on, a statement may open a further connection of its pool even if that closes others', ms: the connection that
 * it waits for may be waiting for it.
 */
const GROW_ANYWAY_MS = 5000;

/** By purpose and server. */
const budgets = new Map<string, ConnectionBudget>();

/** Number of workers that sync, including this one. */
let workers = 1;

/** Divides the connections of each server among `count` workers. */
export function shareServers(count: number): void {
  workers = Math.max(1, count);
}

export interface ServerPoolOptions extends SessionOptions {
  use: ServerUse;
  /** How long statements wait for a full server, ms: as long as the budget allows unless given. 0: they fail at once. */
  patienceMs?: number;
}

/**
 * Creates a pool that connects when first used.
 *
 * @returns `isConnected`: whether a statement would run without a login; `keep`: closes no idle connection for others
 *   until `release`, or for `ms` after the first statement; `closeIdle`: closes idle connections, and returns how many
 */
export function serverPool<T extends Record<string, PostgresType> = Record<never, never>>(
  url: ServerUrl,
  options: Options<T>,
  { use, patienceMs = Number.POSITIVE_INFINITY, onSession, ...session }: ServerPoolOptions,
) {
  const budget = budgetOf(url, use);
  const sockets = new Set<object>();
  /** Connections that were opened, and whose end the driver has not reported. */
  let opened = 0;
  let refusedSince: number | undefined;
  const own = {
    // The driver does not tell which connection it was.
    onclose(id: number) {
      options.onclose?.(id);
      budget.forget(pool);
      for (const socket of sockets) if (isClosed(socket)) sockets.delete(socket);
      if (opened === sockets.size) return budget.giveUnopened();
      opened--;
      budget.give();
    },
    // Where every connection is in use, for example while a thousand bases start, all statements wait. With further
    // connections they would close each other's first ones, and log in again.
    may_grow: (waitedMs: number) => waitedMs >= GROW_ANYWAY_MS || budget.hasSpare,
    // An admin's session may hold locks, and ends soon anyway.
    ...(use === "admin" ? {} : { onidle: () => budget.rests(pool) }),
  };
  const sql = connectServer<T>(
    url,
    { ...options, ...own },
    {
      ...session,
      gate: {
        take: () => budget.take(),
        give: () => budget.giveUnopened(),
        refused() {
          // One role may be at its limit: that says nothing about the server.
          if (patienceMs === 0) return false;
          refusedSince ??= performance.now();
          return budget.refused() && performance.now() - refusedSince < patienceMs;
        },
      },
      onSession(session, connection) {
        budget.opened(session.maxConnections);
        opened++;
        refusedSince = undefined;
        sockets.add(connection.socket);
        onSession?.(session, connection);
      },
    },
  );
  const pool: BudgetedPool = {
    closeIdle: () => (sql as unknown as { closeIdle(): number }).closeIdle(),
  };
  return {
    sql,
    isConnected: () => [...sockets].some((socket) => !isClosed(socket)),
    keep: (ms: number) => budget.keep(pool, ms),
    release: () => budget.release(pool),
    closeIdle: pool.closeIdle,
  };
}

/** Options of pools with which someone checks a server. */
export const CHECKING = { use: "admin", patienceMs: CHECK_PATIENCE_MS } as const;

/** `connectServer` for such a check. */
export const openForCheck = (
  url: ServerUrl,
  options: Options<Record<never, never>>,
  session: SessionOptions,
) => serverPool(url, options, { ...session, ...CHECKING }).sql;

/** Returns how many connections to the server this process's bases may have open for syncing; unlimited if it has none. */
export function syncConnections(server: string): number {
  return budgets.get(`sync ${server}`)?.most ?? Number.POSITIVE_INFINITY;
}

function isClosed(socket: object): boolean {
  return (socket as { destroyed?: boolean }).destroyed === true;
}

function budgetOf(url: ServerUrl, use: ServerUse): ConnectionBudget {
  const name = `${use} ${serverName(url)}`;
  const known = budgets.get(name);
  if (known) return known;
  const sharers = use === "sync" ? () => workers : undefined;
  const budget = new ConnectionBudget((typeof url === "string" ? LIMITS : EXTERNAL_LIMITS)[use], { sharers });
  budgets.set(name, budget);
  return budget;
}

/** Returns a name of a server; two that share an address may have one name. */
export function serverName(url: ServerUrl): string {
  return typeof url === "string" ? new URL(url).host : customerOf(url);
}

/** Names the role, too: customers of one provider may share the address of its pooler. */
function customerOf({ address: { host, port, user } }: ExternalServer): string {
  return `of a customer ${host}:${port} ${user}`;
}
