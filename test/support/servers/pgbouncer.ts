/** PgBouncer (Debian's package) in front of a Postgres server, for tests. */
import { chownSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { chooseUser } from "../../../apps/up/postgres/postgres-user";
import { serverEnv } from "../../../apps/up/postgres/postmaster";
import type { Certified } from "../../../core/http/authority";
import { freePort } from "../free-port";
import { until } from "../poll";
import { scratchFolder } from "../scratch";
import { PASSWORD, type PostgresServer } from "./postgres-server";

/** Debian installs it in a folder that only root's PATH has. */
const PROGRAM = Bun.which("pgbouncer", { PATH: `${process.env.PATH ?? ""}:/usr/sbin:/usr/local/sbin` });
export const HAS_PGBOUNCER = PROGRAM !== null;

const START_MS = 30_000;

/** Such as `1.18.0`; "none" if it is not installed. */
export function pgbouncerVersion(): string {
  if (!PROGRAM) return "none";
  const said = Bun.spawnSync([PROGRAM, "--version"]).stdout.toString();
  return /PgBouncer (\S+)/.exec(said)?.[1] ?? "unknown";
}

export interface PgBouncer extends AsyncDisposable {
  port: number;
  /** `url` of the server, through the pooler. */
  over(url: string): string;
  /** URL of the pooler's own database, which accepts `show pools`, `pause` and `reload`. */
  adminUrl: string;
  /** Its log so far. */
  log(): string;
}

export interface PgBouncerOptions {
  mode: "session" | "transaction";
  /** Lines for `[pgbouncer]` over the defaults, such as `ignore_startup_parameters`. */
  settings?: Record<string, string>;
  /** Clients may use TLS: PgBouncer terminates it, and connects to the server without TLS. */
  tls?: Certified;
  /**
   * Logins that only the pooler knows, such as `postgres.abc`, with the password `pw`. Such a client needs a `mapped`
   * database.
   */
  logins?: string[];
  /** By the database name that clients send: the database and role that they get (`user=` in PgBouncer's terms). */
  mapped?: Record<string, { database: string; role: string }>;
}

/**
 * Starts it on a free port. Roles and their passwords are the server's (`auth_query`), including new ones.
 *
 * @throws Error if PgBouncer is not installed: check `HAS_PGBOUNCER` first
 */
export async function pgBouncer(server: PostgresServer, options: PgBouncerOptions): Promise<PgBouncer> {
  if (!PROGRAM) throw new Error("PgBouncer is not installed: apt-get install pgbouncer");
  const folder = scratchFolder("pgbouncer");
  const user = chooseUser(folder);
  const port = await freePort();
  const put = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    if (user) chownSync(path, user.uid, user.gid);
    return path;
  };
  const clients = ["postgres", ...(options.logins ?? [])];
  const settings: Record<string, string> = {
    listen_addr: "127.0.0.1",
    listen_port: String(port),
    unix_socket_dir: "",
    pool_mode: options.mode,
    auth_type: "scram-sha-256",
    auth_file: put("users", clients.map((name) => `"${name}" "${PASSWORD}"\n`).join("")),
    auth_user: "postgres",
    auth_query: "select usename, passwd from pg_catalog.pg_shadow where usename = $1",
    admin_users: "postgres",
    max_client_conn: "1000",
    ...loginDatabase(server),
    ...(options.tls && {
      client_tls_sslmode: "allow",
      client_tls_cert_file: put("server.crt", options.tls.certificate),
      client_tls_key_file: put("server.key", options.tls.key),
    }),
    ...options.settings,
  };
  const to = `host=127.0.0.1 port=${server.port}`;
  const config = put(
    "pgbouncer.ini",
    [
      "[databases]",
      ...Object.entries(options.mapped ?? {}).map(
        ([name, { database, role }]) =>
          `${name} = ${to} dbname=${database} user=${role} password=${PASSWORD}`,
      ),
      `* = ${to}`,
      "[pgbouncer]",
      ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
      "",
    ].join("\n"),
  );
  const child = Bun.spawn([PROGRAM, config], {
    cwd: "/",
    env: serverEnv,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    ...user,
  });
  let words = "";
  const read = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream() as never)) words += chunk;
  })();
  await until(
    () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${words}`);
      return accepts(port);
    },
    { what: "PgBouncer listens", timeoutMs: START_MS },
  );
  const over = (url: string) => Object.assign(new URL(url), { port: String(port) }).href;
  return {
    port,
    over,
    adminUrl: over(server.as("postgres", "pgbouncer")),
    log: () => words,
    async [Symbol.asyncDispose]() {
      child.kill("SIGQUIT");
      await child.exited;
      await read;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * PgBouncer looks up passwords over a superuser's connection to the client's database, which then cannot be dropped.
 * Uses another database if this version supports it, and else keeps the connection only briefly.
 */
function loginDatabase(server: PostgresServer): Record<string, string> {
  const [major = 0, minor = 0] = pgbouncerVersion().split(".").map(Number);
  const database = new URL(server.url).pathname.slice(1);
  return major > 1 || minor >= 19 ? { auth_dbname: database } : { server_idle_timeout: "1" };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
