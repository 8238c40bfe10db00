/** A Postgres server of a given version for one test: started on a free port of loopback, stopped with its handle. */
import { chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { chooseUser, type RunAs } from "../../../apps/up/postgres/postgres-user";
import { serverEnv, startPostmaster } from "../../../apps/up/postgres/postmaster";
import type { Certified } from "../../../core/http/authority";
import { createLogger } from "../../../core/log";
import { freePort } from "../free-port";
import { scratchFolder } from "../scratch";
import { unsafeButFast } from "../server";
import { type PostgresVersion, postgresBinaries } from "./postgres-versions";

/** The password of the superuser, and of each role that `role` creates. */
export const PASSWORD = "pw";

const SETTINGS = {
  ...unsafeButFast,
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "64MB",
  max_wal_size: "512MB",
  jit: "off",
  timezone: "UTC",
};

export interface PostgresServer extends AsyncDisposable {
  version: PostgresVersion;
  host: string;
  port: number;
  /** The superuser's URL of the database `postgres`. */
  url: string;
  dataDir: string;
  /** URL of `role` (password `pw`) to `database`. */
  as(role: string, database?: string): string;
  /** Creates a role that may log in. @param rights such as `createdb createrole`. @returns its URL to `database` */
  role(name: string, rights?: string, database?: string): Promise<string>;
  /** Runs statements as the superuser, one after the other, each outside a transaction. */
  run(statements: string[], database?: string): Promise<void>;
}

export interface PostgresServerOptions {
  version: PostgresVersion;
  /** Lines for `postgresql.conf`, over the defaults. */
  settings?: Record<string, string>;
  /** Uses TLS with this certificate. */
  tls?: Certified;
}

export async function postgresServer({
  version,
  settings = {},
  tls,
}: PostgresServerOptions): Promise<PostgresServer> {
  const folder = scratchFolder(`postgres-${version}`);
  const dataDir = join(folder, "postgres");
  const user = chooseUser(dataDir);
  const binaries = postgresBinaries(version, user);
  const put = (name: string, text: string) => putOwned(join(folder, name), text, user);
  mkdirSync(dataDir, { mode: 0o700 });
  if (user) chownSync(dataDir, user.uid, user.gid);
  put("password", PASSWORD);
  await initdb(binaries.initdb, dataDir, join(folder, "password"), user);
  if (tls) {
    put("server.crt", tls.certificate);
    put("server.key", tls.key);
  }
  const lines = {
    ...SETTINGS,
    ...(tls && {
      ssl: "on",
      ssl_cert_file: join(folder, "server.crt"),
      ssl_key_file: join(folder, "server.key"),
    }),
    ...settings,
  };
  const conf = Object.entries(lines).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
  put("postgres/postgresql.conf", conf.join(""));
  put("postgres/pg_hba.conf", "host all all all scram-sha-256\nhost replication all all scram-sha-256\n");
  const port = await freePort();
  const postmaster = await startPostmaster({
    command: [binaries.postgres, "-D", dataDir, "-p", String(port)],
    dataDir,
    user,
    log: createLogger("error", "test"),
  });
  const as = (role: string, database = "postgres") =>
    `postgres://${encodeURIComponent(role)}:${PASSWORD}@127.0.0.1:${port}/${database}`;
  const server: PostgresServer = {
    version,
    host: "127.0.0.1",
    port,
    url: as("postgres"),
    dataDir,
    as,
    async role(name, rights = "", database = "postgres") {
      await server.run([`create role ${JSON.stringify(name)} login password '${PASSWORD}' ${rights}`]);
      return as(name, database);
    },
    async run(statements, database) {
      const sql = postgres(as("postgres", database), { max: 1, onnotice: () => {} });
      try {
        for (const statement of statements) await sql.unsafe(statement);
      } finally {
        await sql.end();
      }
    },
    async [Symbol.asyncDispose]() {
      await postmaster.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

async function initdb(program: string, dataDir: string, passwordFile: string, user?: RunAs): Promise<void> {
  const child = Bun.spawn(
    [
      program,
      `--pgdata=${dataDir}`,
      "--username=postgres",
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      "--no-instructions",
      "--no-sync",
    ],
    { cwd: "/", env: serverEnv, stdin: "ignore", stdout: "ignore", stderr: "pipe", ...user },
  );
  const [words, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`initdb failed: ${words}`);
}

/** Writes a file that `user` owns and no other user may read. */
function putOwned(path: string, text: string, user: RunAs | undefined): void {
  writeFileSync(path, text, { mode: 0o600 });
  if (user) chownSync(path, user.uid, user.gid);
}
