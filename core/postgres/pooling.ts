/**
 * What stands in front of a server: nothing, a pooler that keeps a connection for each of ours, or one that does so for a
 * transaction only. Advisory locks, prepared statements, settings and LISTEN need the former.
 */
import type { Sql } from "postgres";
import type { ServerUrl } from "../external";
import { connectServer } from "./client";
import { TRANSACTION_POOLED } from "./errors";
import type { SessionState } from "./session";

export type Pooling =
  | "none"
  | "session"
  /** In session mode, with room for a single connection. */
  | "full"
  | "transaction";

const CONNECT_TIMEOUT_SECONDS = 10;
/** A pooler that has a connection left gives it out within this. */
const FULL_MS = 3000;

/**
 * Opens two connections, and compares the server's processes behind them: two at once have one process each, and keep it,
 * unless a pooler moves them. Sets nothing: on a pooler it would be there for its other clients.
 *
 * @param signal cuts the connections
 * @throws what the connection does
 */
export async function findPooling(url: ServerUrl, signal?: AbortSignal): Promise<Pooling> {
  const sessions: SessionState[] = [];
  const open = () =>
    connectServer(
      url,
      { max: 1, connect_timeout: CONNECT_TIMEOUT_SECONDS, fetch_types: false, onnotice: () => {} },
      { onSession: (session) => void sessions.push(session), isUnset: true },
    );
  const [first, second] = [open(), open()];
  using _cut = cutAt(signal, first, second);
  try {
    const pid = await pidOf(first);
    if (!sessions[0]!.isPooled) return "none";
    const other = await soon(pidOf(second));
    if (other === undefined) return "full";
    if (other === pid) return "transaction";
    // One of its connections is taken now: where the other client's may move, it does.
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

/** Ends the pools at once when `signal` comes: a server that falls silent would keep them. */
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

async function soon(pid: Promise<number>): Promise<number | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  pid.catch(() => {});
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), FULL_MS);
  });
  try {
    return await Promise.race([pid, late]);
  } finally {
    clearTimeout(timer);
  }
}
