/**
 * Sets up each new connection: its settings, after it is connected.
 *
 * Poolers refuse settings in the startup message (PgBouncer, Neon) or drop them (Supavisor). Set afterwards they hold for
 * the session, and where something stands between us and the server, they are read once more: a pooler in transaction
 * mode hands every statement to whichever connection is free, and no lock, setting or listener survives that.
 */

import { TransactionPooled } from "./errors";
import type { SettingsWhereDifferent } from "./session-settings";

/** Runs one simple query on the new connection. */
export type Run = (text: string) => PromiseLike<readonly Record<string, unknown>[]>;

/** What is known of a new connection. */
export interface SessionState {
  /** The server's process. */
  backendPid: number;
  /** Something between us and the server keeps connections to it: the login named another process. */
  isPooled: boolean;
}

/** Behind a pooler these are of its own connection, which may be a Unix socket: they read as 0 there. */
const NOT_READ_AGAIN = /^tcp_/;

/**
 * Applies `settings`, and makes sure that they hold: in one round trip on a direct connection, in three behind a pooler,
 * whose connections are other clients' next.
 *
 * @param loginPid the server's process as the login named it
 * @throws TransactionPooled where they do not, as the next statement runs elsewhere
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
  const session = { backendPid: first.pid, isPooled: first.pid !== loginPid };
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

/** Null where the server does not know it. */
function current(name: string): string {
  return `pg_catalog.current_setting(${literal(name)}, true)`;
}

/** Every name is qualified: whose database it is may have functions of the same names. */
async function readRow(run: Run, columns: string[]): Promise<{ pid: number; values: unknown[] }> {
  const named = columns.map((column, at) => `, ${column} as v${at}`);
  const [row] = await run(`select pg_catalog.pg_backend_pid() as pid${named.join("")}`);
  const pid = Number(row?.pid);
  if (!row || !Number.isInteger(pid))
    throw new Error("the server does not say which process serves the connection");
  return { pid, values: columns.map((_, at) => row[`v${at}`]) };
}

function literal(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted;
}
