/**
 * Detects what is in front of a server: nothing, a pooler in session mode, or a pooler in transaction mode. Advisory
 * locks, prepared statements, settings and LISTEN need a session of their own.
 */
import type { Options, Sql } from "postgres";
import { withTimeout } from "../async";
import type { ServerUrl } from "../external";
import { connectServer, type SessionOptions } from "./client";
import { TRANSACTION_POOLED } from "./errors";
import type { SessionState } from "./session";

export type Pooling =
  | "none"
  | "session"
  /** A pooler in session mode, with room for a single connection. */
  | "full"
  | "transaction";

/** Creates a pool as `connectServer` does. */
export type OpenPool = (
  url: ServerUrl,
  options: Options<Record<never, never>>,
  session: SessionOptions,
) => Sql;

/** How long a server that holds replicas may take to accept a connection. */
export const CONNECT_SECONDS = 10;
/** A pooler that has a free connection assigns it within this time. */
const FULL_MS = 3000;

/**
 * Opens two connections, and compares the server processes behind them: two concurrent connections have one process
 * each, and keep it, unless a pooler moves them. Applies no settings: on a pooler they would remain for its other
 * clients.
 *
 * @param options.signal closes the connections
 * @param options.open creates the pool of the first connection. The second one is needed only behind a pooler, and never
 *   waits: that the pooler is full is a result
 * @throws the connection's error
 */
export async function findPooling(
  url: ServerUrl,
  { signal, open = connectServer }: { signal?: AbortSignal | undefined; open?: OpenPool | undefined } = {},
): Promise<Pooling> {
  const sessions: SessionState[] = [];
  const [first, second] = [open, connectServer].map((connect) =>
    connect(
      url,
      { max: 1, connect_timeout: CONNECT_SECONDS, fetch_types: false, onnotice: () => {} },
      { onSession: (session) => void sessions.push(session), isUnset: true },
    ),
  ) as [Sql, Sql];
  using _cut = cutAt(signal, first, second);
  try {
    const pid = await pidOf(first);
    if (!sessions[0]!.isPooled) return "none";
    const other = await soon(pidOf(second));
    if (other === undefined) return "full";
    if (other === pid) return "transaction";
    // The transaction occupies one of the pooler's connections: if the pooler can move the other client, it does so
    // now.
    const isMoved = await second.begin(
      async (tx) => (await pidOf(tx as unknown as Sql)) !== other || (await soon(pidOf(first))) !== pid,
    );
    return isMoved ? "transaction" : "session";
  } catch (error) {
    if ((error as { code?: unknown }).code === TRANSACTION_POOLED) return "transaction";
    throw error;
  } finally {
    await Promise.all([first, second].map((sql) => sql.end({ timeout: 1 })));
  }
}

/** Ends the pools at once when `signal` aborts: a server that goes silent would keep them open. */
export function cutAt(signal: AbortSignal | undefined, ...pools: Pick<Sql, "end">[]): Disposable {
  const cut = () => {
    for (const pool of pools) void pool.end({ timeout: 0 });
  };
  signal?.addEventListener("abort", cut, { once: true });
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", cut) };
}

async function pidOf(sql: Sql): Promise<number> {
  const [row] = await sql.unsafe<{ pid: number }[]>("select pg_catalog.pg_backend_pid() as pid").simple();
  return row!.pid;
}

function soon(pid: Promise<number>): Promise<number | undefined> {
  return withTimeout(FULL_MS, () => undefined, pid);
}
