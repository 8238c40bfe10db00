/**
 * Connects to databases for the console, with a role that reads what the customer can read, and nothing else: its own in
 * a hosted database, that of the reading URL in one that the customer hosts.
 *
 * Sessions are read-only whatever the role may do, and their statements are limited in time. The connections count in
 * the budget `console` of their server, and toward the limit of the database; idle ones are closed soon.
 */
import type { Sql } from "postgres";
import type { Context } from "../../context";
import { CONNECT_SECONDS, WATCHED_BY_SERVER } from "../../postgres";
import { SAFE_SEARCH_PATH, serverPool } from "../../replica";
import { type Database, databaseReaderUrl } from "./databases";

export type ReaderSql = Sql;

/** Per database: a page, and one more for a download or another person. */
const MAX_CONNECTIONS = 2;
/** Seconds. A person who turns pages keeps the connection. */
const IDLE_TIMEOUT = 20;
/** How long a statement waits if the server is full, or for a lock, ms. A change of a table takes less. */
const PATIENCE_MS = 3000;
/** Longest time of a statement, ms. */
export const READER_STATEMENT_MS = 5000;
/** Pools without open connections cost almost nothing. */
const MOST_POOLS = 200;

/** By database; the least recently used first. */
const pools = new Map<string, { key: string; sql: ReaderSql }>();

/**
 * Returns a pool on the database, as the role that the console reads with. Connects on first use. The next call may return another pool,
 * so use it at once.
 *
 * @throws BasetideError `secret_unreadable`
 */
export async function readerPool(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  database: Database,
): Promise<ReaderSql> {
  const url = await databaseReaderUrl(ctx, database);
  // A rotated password makes another pool.
  const key = typeof url === "string" ? url : JSON.stringify(url.address);
  const known = pools.get(database.id);
  if (known) pools.delete(database.id);
  const pool = known?.key === key ? known : { key, sql: open(url) };
  if (known && known !== pool) end(known.sql);
  pools.set(database.id, pool);
  if (pools.size > MOST_POOLS) {
    const [oldest, { sql }] = pools.entries().next().value!;
    pools.delete(oldest);
    end(sql);
  }
  return pool.sql;
}

/** Closes all connections, when the process ends. */
export async function closeReaders(): Promise<void> {
  const open = [...pools.values()];
  pools.clear();
  await Promise.all(open.map(({ sql }) => sql.end({ timeout: 1 })));
}

function open(url: Awaited<ReturnType<typeof databaseReaderUrl>>): ReaderSql {
  const options = {
    max: MAX_CONNECTIONS,
    idle_timeout: IDLE_TIMEOUT,
    connect_timeout: CONNECT_SECONDS,
    prepare: false,
    fetch_types: false,
    onnotice: () => {},
    connection: {
      application_name: "basetide console",
      search_path: SAFE_SEARCH_PATH,
      default_transaction_read_only: true,
      statement_timeout: READER_STATEMENT_MS,
      lock_timeout: PATIENCE_MS,
      // Compiling takes longer than it saves in statements that return a page.
      jit: "off",
      idle_in_transaction_session_timeout: 2 * READER_STATEMENT_MS,
      ...WATCHED_BY_SERVER,
    },
  };
  return serverPool(url, options, { use: "console", patienceMs: PATIENCE_MS }).sql as ReaderSql;
}

/** Lets running statements end. */
function end(sql: ReaderSql): void {
  void sql.end({ timeout: READER_STATEMENT_MS / 1000 }).catch(() => {});
}
