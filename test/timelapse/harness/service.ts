/**
 * The whole service of a time lapse: two workers, a proxy and a console, each a supervised process, one Postgres server for
 * the control plane and the replicas, and a sandbox.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../../apps/up/postgres/embedded-postgres";
import { embeddedRoles } from "../../../apps/up/postgres/embedded-roles";
import { createAccount, createToken } from "../../../core/control/accounts";
import { createLogger } from "../../../core/log";
import { consoleClient } from "../../support/console-client";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";
import { type SandboxProcess, startSandboxProcess } from "../../support/sandbox-process";
import { scratchFolder } from "../../support/scratch";
import { type Role, type Supervised, supervise } from "../../support/supervised";

export const EMAIL = "lapse@example.org";
export const PASSWORD = "correct horse";
/** Not UTC, and with a summer time. */
const ZONE = "Europe/Berlin";
const READY_MS = 60_000;

export interface Service extends AsyncDisposable {
  sandbox: SandboxProcess;
  processes: Supervised[];
  worker: Supervised;
  /** The control plane, as its own role. */
  control: postgres.Sql;
  /** The server's superuser on a database. */
  superuser(database: string): postgres.Sql;
  /** The folder of the processes (DATA_DIR), and that of Postgres. */
  folders: { data: string; postgres: string };
  /** The management API, with the account's own token unless given. @throws Error for a status of 400 and above */
  manage<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** The status with which the management API answers this token. */
  statusFor(token: string): Promise<number>;
  accountId: string;
  /** Pages, as the account's owner. */
  browser: ReturnType<typeof consoleClient>;
  consoleUrl: string;
  /** A request to the source through the proxy. */
  proxied(method: string, path: string, body?: unknown): Promise<Response>;
}

export async function startService(logFile: string | undefined): Promise<Service> {
  await using starting = new AsyncDisposableStack();
  let releases = starting;
  const folder = scratchFolder("timelapse");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const folders = { data: join(folder, "data"), postgres: join(folder, "postgres") };
  mkdirSync(folders.data);
  const server = await startEmbeddedPostgres({
    dataDir: folders.postgres,
    port: 0,
    log: createLogger("fatal", "timelapse"),
    settings: {
      fsync: "off",
      full_page_writes: "off",
      shared_buffers: "64MB",
      max_connections: "200",
      timezone: ZONE,
      max_wal_size: "128MB",
      min_wal_size: "64MB",
      wal_recycle: "off",
      // Days pass in seconds.
      autovacuum_naptime: "10s",
      checkpoint_timeout: "30s",
    },
  });
  releases.defer(() => server.stop());
  const roles = await embeddedRoles(server.url, "basetide");
  const sandbox = releases.use(await startSandboxProcess());
  const [consolePort, proxyPort] = [await freePort(), await freePort()];
  const [consoleUrl, proxyUrl] = [consolePort, proxyPort].map((port) => `http://127.0.0.1:${port}`) as [
    string,
    string,
  ];
  const env = {
    ...sandbox.clientEnv,
    DATABASE_URL: roles.controlUrl,
    REPLICA_URL: roles.clusterUrl,
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: folders.data,
    LOG_LEVEL: "info",
    CONSOLE_URL: consoleUrl,
    PROXY_URL: proxyUrl,
    TZ: ZONE,
    SCHEMA_POLL_SECONDS: "3",
    WRITE_PORT: String(await freePort()),
  };
  const start = (name: string, role: Role, port: number) =>
    releases.use(supervise(name, role, port, env, logFile));
  const processes = [start("console", "console", consolePort)];
  for (const number of [1, 2]) processes.push(start(`worker ${number}`, "worker", await freePort()));
  processes.push(start("proxy", "proxy", proxyPort));
  for (const one of processes)
    await until(() => one.isReady(), { what: `${one.name} is ready`, timeoutMs: READY_MS });
  const connect = (url: string, max: number) => {
    const sql = postgres(url, { max, onnotice: () => {}, idle_timeout: 20 });
    releases.defer(() => sql.end({ timeout: 1 }));
    return sql;
  };
  const control = connect(roles.controlUrl, 3);
  const superusers = new Map<string, postgres.Sql>();
  const account = await createAccount(control, { email: EMAIL, password: PASSWORD });
  const token = await createToken(control, account.id, "lapse");
  const api = (method: string, path: string, body: unknown, bearer: string) =>
    fetch(`${consoleUrl}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  releases = starting.move();
  return {
    sandbox,
    processes,
    worker: processes[1]!,
    control,
    superuser: (database) =>
      superusers.getOrInsertComputed(database, () =>
        connect(Object.assign(new URL(server.url), { pathname: `/${database}` }).href, 1),
      ),
    folders,
    async manage<T>(method: string, path: string, body?: unknown) {
      const answer = await api(method, path, body, token);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
      return (text ? JSON.parse(text) : undefined) as T;
    },
    statusFor: async (bearer) => (await api("GET", "bases", undefined, bearer)).status,
    accountId: account.id,
    browser: consoleClient({
      handle: (request) => {
        const url = new URL(request.url);
        return fetch(new Request(`${consoleUrl}${url.pathname}${url.search}`, request), {
          redirect: "manual",
        });
      },
    }),
    consoleUrl,
    proxied: (method, path, body) =>
      fetch(`${proxyUrl}/api.airtable.com/v0/${path}`, {
        method,
        headers: { authorization: `Bearer ${sandbox.key}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    [Symbol.asyncDispose]: () => releases.disposeAsync(),
  };
}
