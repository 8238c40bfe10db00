/**
 * Applies the settings of each new connection after it is established.
 *
 * Poolers reject settings in the startup message (PgBouncer, Neon) or drop them (Supavisor). Settings applied
 * afterwards last for the session. If a pooler may be in between, they are read back: a pooler in transaction mode
 * sends every statement over any free connection, and no lock, setting or listener survives that.
 */

import { TransactionPooled } from "./errors";
import type { SettingsWhereDifferent } from "./session-settings";

/** Runs one simple query on the new connection. */
export type Run = (text: string) => PromiseLike<readonly Record<string, unknown>[]>;

/** The state of a new connection. */
export interface SessionState {
  /** The server's process. */
  backendPid: number;
  /** A pooler keeps the connections to the server: the login named another process. */
  isPooled: boolean;
  /** The server's `max_connections`. */
  maxConnections: number;
}

/** Behind a pooler these describe the pooler's own connection, which may be a Unix socket: there they read as 0. */
const NOT_READ_AGAIN = /^tcp_/;

/**
 * Applies `settings`, and verifies that they last: in one round trip on a direct connection, in three behind a pooler,
 * whose connections are reused by other clients.
 *
 * @param loginPid the server's process as reported at login
 * @throws TransactionPooled if they do not last, because the next statement runs elsewhere
 */
export async function prepareSession(
  run: Run,
  loginPid: number,
  settings: Record<string, string>,
  { anyRole, superuser }: SettingsWhereDifferent = { anyRole: {}, superuser: {} },
): Promise<SessionState> {
  const names = [settings, anyRole, superuser].flatMap(Object.keys);
  const set = [
    ...Object.entries(settings).map(([name, value]) => setting(name, value)),
    ...Object.entries(anyRole).map(([name, value]) => settingWhere("true", name, value)),
    ...Object.entries(superuser).map(([name, value]) =>
      settingWhere("pg_catalog.current_setting('is_superuser') = 'on'", name, value),
    ),
  ];
  const first = await readRow(
    run,
    set.map((call) => `case when pg_catalog.pg_backend_pid() = ${loginPid} then ${call} end`),
  );
  const session = {
    backendPid: first.pid,
    isPooled: first.pid !== loginPid,
    maxConnections: first.maxConnections,
  };
  if (!session.isPooled) return session;
  const second = await readRow(run, set);
  const read = names.map(current);
  const third = await readRow(run, read);
  const isKept = names.every(
    (name, at) => NOT_READ_AGAIN.test(name) || third.values[at] === second.values[at],
  );
  if (second.pid !== first.pid || third.pid !== first.pid || !isKept) throw new TransactionPooled();
  return session;
}

function setting(name: string, value: string): string {
  return `pg_catalog.set_config(${literal(name)}, ${literal(value)}, false)`;
}

function settingWhere(condition: string, name: string, value: string): string {
  const now = current(name);
  return `coalesce(case when ${now} <> ${literal(value)} and ${condition} then ${setting(name, value)} end, ${now})`;
}

/** Null if the server does not have the setting. */
function current(name: string): string {
  return `pg_catalog.current_setting(${literal(name)}, true)`;
}

interface SessionRow {
  pid: number;
  maxConnections: number;
  values: unknown[];
}

/** Every name is qualified: a customer's database may have functions with the same names. */
async function readRow(run: Run, columns: string[]): Promise<SessionRow> {
  const named = columns.map((column, at) => `, ${column} as v${at}`);
  const most = "pg_catalog.current_setting('max_connections') as most";
  const [row] = await run(`select pg_catalog.pg_backend_pid() as pid, ${most}${named.join("")}`);
  const [pid, maxConnections] = [Number(row?.pid), Number(row?.most)];
  if (!row || !Number.isInteger(pid) || !Number.isInteger(maxConnections))
    throw new Error("the server does not say which process serves the connection, and how many it allows");
  return { pid, maxConnections, values: columns.map((_, at) => row[`v${at}`]) };
}

function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}
