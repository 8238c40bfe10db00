/**
 * The whole service as in production, for attacks: a console, two proxies and two workers, each a supervised process; a
 * Postgres for the control plane and one for the replicas; a third that customers host; the source, and a mail server.
 *
 * Three accounts use it. Attacks access the service as outsiders do: by HTTP, sockets, SQL and the operator's command
 * line. The servers' superuser only observes.
 */
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import type { Random } from "../../apps/sandbox/random";
import type { SourceDump } from "../support/compare-to-source";
import { type ConsoleClient, consoleClient } from "../support/console-client";
import { freePort } from "../support/free-port";
import { type Mailbox, startMailbox } from "../support/mailbox";
import { type MortalPostgres, mortalPostgres } from "../support/mortal-postgres";
import { until } from "../support/poll";
import { residentBytes } from "../support/process-usage";
import { startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { type Role, type Supervised, supervise } from "../support/supervised";
import { Account, type ApiBase, type NewBase } from "./account";
import { type Firewall, startFirewall } from "./firewall";

/** A first sync on a busy machine, ms. */
const FIRST_SYNC_MS = 120_000;
/** The longest time until a killed or stopped process serves again, ms. */
const RECOVERY_MS = 60_000;
/** A process that answers its health check later than this is frozen, ms: the limit of all attacks. */
export const FREEZE_MS = 1000;
/** How often a wait for a health check tests whether this process itself was stalled, ms. */
const TICK_MS = 20;

/** A base at the source, with one table `Tasks`. */
export interface SourceBase {
  id: string;
  recordIds: string[];
}

/** A base of an account, with its replica. */
export interface Connected {
  id: string;
  account: Account;
  source: SourceBase;
  /** The key that the account connected it with. */
  key: string;
  /** The customer's URL. */
  url: string;
  sql: postgres.Sql;
}

export interface ConnectOptions extends Omit<NewBase, "platform" | "base_id"> {
  /** Do not wait for the first sync. */
  isUnsynced?: boolean;
}

export type AccountName = "victim" | "mallory" | "third";

export class Service implements AsyncDisposable {
  #releases = new AsyncDisposableStack();
  #pools = new Map<string, postgres.Sql>();
  #deaths: string[] = [];
  #firewall: Firewall | undefined;
  /** Called when an account or the operator does something that is not an attack. */
  onSetUp: (what: "begins" | "ends") => void = () => {};

  private constructor(
    readonly control: MortalPostgres,
    readonly replicas: MortalPostgres,
    /** A server that customers host. */
    readonly elsewhere: MortalPostgres,
    readonly sandbox: SandboxProcess,
    readonly mailbox: Mailbox,
    readonly processes: Supervised[],
    readonly accounts: Record<AccountName, Account>,
    readonly env: Record<string, string>,
    /** The `CONNECT_PORT` of each proxy, and the certificate of its authority. */
    readonly tunnels: { port: number; authority: string }[],
  ) {}

  static async start(options: { logFile?: string; env?: Record<string, string> } = {}): Promise<Service> {
    await using releases = new AsyncDisposableStack();
    const [control, replicas, elsewhere, sandbox] = await Promise.all([
      mortalPostgres(),
      mortalPostgres(),
      mortalPostgres(),
      startSandboxProcess(),
    ]);
    for (const one of [control, replicas, elsewhere, sandbox]) releases.use(one);
    const mailbox = startMailbox();
    releases.defer(() => mailbox.stop());
    const [consolePort, ...others] = await Promise.all(Array.from({ length: 7 }, freePort));
    const folder = mkdtempSync(join(tmpdir(), "attacked-"));
    releases.defer(() => rmSync(folder, { recursive: true, force: true }));
    const tunnels = others.slice(4).map((port, at) => ({
      port,
      folder: join(folder, String(at)),
      authority: join(folder, String(at), "connect-ca.pem"),
    }));
    const consoleUrl = `http://127.0.0.1:${consolePort}`;
    const env = {
      ...(await ownRoles(control.url, replicas.url)),
      SECRET_KEY: randomBytes(32).toString("base64"),
      DATA_DIR: join(tmpdir(), "basetide-unused"),
      CONSOLE_URL: consoleUrl,
      UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
      SMTP_URL: mailbox.url,
      // Attackers come from several addresses.
      CLIENT_IP_HEADER: "x-client",
      LOG_LEVEL: "info",
      // Schema changes are detected soon.
      SCHEMA_POLL_SECONDS: "2",
      API_REQUESTS_PER_MINUTE: "100000",
      ...options.env,
    };
    const roles: [string, Role, number][] = [
      ["console", "console", consolePort!],
      ["proxy 1", "proxy", others[0]!],
      ["proxy 2", "proxy", others[1]!],
      ["worker 1", "worker", others[2]!],
      ["worker 2", "worker", others[3]!],
    ];
    const processes = roles.map(([name, role, port], at) => {
      const tunnel = role === "proxy" ? tunnels[at - 1] : undefined;
      const own = tunnel ? { ...env, CONNECT_PORT: String(tunnel.port), DATA_DIR: tunnel.folder } : env;
      return releases.use(supervise(name, role, port, own, options.logFile));
    });
    for (const one of processes)
      await until(() => one.isReady(), { what: `${one.name} is ready`, timeoutMs: 40_000, intervalMs: 50 });
    const names: AccountName[] = ["victim", "mallory", "third"];
    const made = await Promise.all(names.map((name) => createAccount(env, name, consoleUrl)));
    const accounts = Object.fromEntries(names.map((name, at) => [name, made[at]!]));
    const service = new Service(
      control,
      replicas,
      elsewhere,
      sandbox,
      mailbox,
      processes,
      accounts as Record<AccountName, Account>,
      env,
      tunnels,
    );
    service.#releases = releases.move();
    if (options.logFile) appendFileSync(options.logFile, `== service on ${consoleUrl}\n`);
    return service;
  }

  of(role: Role): Supervised[] {
    return this.processes.filter((one) => one.role === role);
  }

  get consoleUrl(): string {
    return this.env.CONSOLE_URL!;
  }

  /** URL of the proxy for Airtable's API; `number` alternates between the two. */
  endpoint(number = 0): string {
    return `http://127.0.0.1:${this.of("proxy")[number % 2]!.port}/api.airtable.com/v0`;
  }

  /** A browser at the console, with its own client address. */
  browser(address: string): ConsoleClient {
    const handle = async (request: Request) => {
      const url = this.consoleUrl + request.url.slice(new URL(request.url).origin.length);
      const { method, headers } = request;
      const body = method === "GET" ? null : await request.text();
      return fetch(url, { method, headers, body, redirect: "manual", signal: AbortSignal.timeout(30_000) });
    };
    return consoleClient({ handle } as never, address);
  }

  /** Runs the operator's command line. @returns its output */
  async operator(...words: string[]): Promise<string> {
    return this.setUp(() => runOperator(this.env, words));
  }

  /** A normal action of an account, such as connecting a base: not an attack. */
  async setUp<T>(work: () => Promise<T>): Promise<T> {
    this.onSetUp("begins");
    try {
      return await work();
    } finally {
      this.onSetUp("ends");
    }
  }

  /** Creates a base at the source. */
  async sourceBase(name = "Base", records = 5): Promise<SourceBase> {
    const { baseId } = (await this.sandbox.call("POST", "bases", tasksBase(name, records))) as {
      baseId: string;
    };
    const dump = await this.dump(baseId);
    return { id: baseId, recordIds: dump.tables[0]!.records.map(({ id }) => id) };
  }

  async dump(sourceBaseId: string): Promise<SourceDump> {
    return (await this.sandbox.call("GET", `dump/${sourceBaseId}`)) as SourceDump;
  }

  /** Creates a key of the source for a new user: Airtable limits users, too. */
  async key(
    bases: Record<string, string>,
    user = `usr${crypto.randomUUID().replaceAll("-", "").slice(0, 14)}`,
  ) {
    const options = { bases, user: { id: user, email: `${user}@example.org`, name: user } };
    return ((await this.sandbox.call("POST", "keys", options)) as { token: string }).token;
  }

  /** Connects a base for an account. */
  async connect(account: Account, source: SourceBase, options: ConnectOptions): Promise<Connected> {
    const { isUnsynced = false, ...rest } = options;
    const id = await this.setUp(async () => {
      const made = await account.connect({ platform: "airtable", base_id: source.id, ...rest });
      if (!isUnsynced) await this.synced(account, made.id);
      return made.id;
    });
    const external = rest.destination?.kind === "external" ? rest.destination.url : undefined;
    const url = external ?? (await account.credentials(id));
    return { id, account, source, key: rest.api_key, url, sql: this.pool(url) };
  }

  async disconnect({ account, id }: Connected): Promise<void> {
    await this.setUp(() => account.disconnect(id));
  }

  /** Waits for the first sync. */
  async synced(account: Account, id: string): Promise<ApiBase> {
    return until(
      async () => {
        const base = await account.base(id);
        return base.sync.completed_at !== null ? base : undefined;
      },
      { what: `the first sync of ${id}`, timeoutMs: FIRST_SYNC_MS, intervalMs: 100 },
    );
  }

  /** A small pool on a database, closed with the service. */
  pool(url: string): postgres.Sql {
    const known = this.#pools.get(url);
    if (known) return known;
    const sql = postgres(url, { max: 2, onnotice: () => {}, connect_timeout: 10, fetch_types: false });
    this.#pools.set(url, sql);
    return sql;
  }

  /** Puts a firewall between the replicas and their attackers. */
  async closeOff(): Promise<void> {
    this.#firewall = this.#releases.use(await startFirewall(this.replicas.url));
  }

  /** The URL of a replica's database for outsiders: through the firewall, if there is one. */
  fromOutside(url: string): string {
    return this.#firewall?.before(url) ?? url;
  }

  /**
   * Observes a replica as its server's superuser. Its connections must be closed, or the service cannot drop the
   * database.
   */
  async asSuperuser<T>({ url }: { url: string }, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    const own = new URL(this.replicas.url);
    own.pathname = new URL(url).pathname;
    const sql = postgres(own.href, { max: 1, onnotice: () => {}, fetch_types: false });
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  /** Calls the source's API through a proxy. */
  async call(path: string, key: string | undefined, init: CallInit = {}): Promise<CallAnswer> {
    const { method = "GET", body, headers = {}, proxy = 0, timeoutMs = 40_000 } = init;
    const from = performance.now();
    const response = await fetch(`${this.endpoint(proxy)}/${path}`, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, ms: performance.now() - from };
  }

  /** Unexpected ends of processes since the last call. */
  takeDeaths(): string[] {
    const deaths = this.processes.flatMap((one) => one.faults.splice(0));
    this.#deaths.push(...deaths);
    return deaths;
  }

  /** The same, including those that an attack has recorded. */
  takeAllDeaths(): string[] {
    this.takeDeaths();
    return this.#deaths.splice(0);
  }

  /**
   * Waits until every process answers again; kills frozen ones, like an orchestrator's probe.
   *
   * @returns names of the frozen ones
   */
  async recover(): Promise<string[]> {
    const frozen: string[] = [];
    for (const one of this.processes) {
      if ((await healthMs(one.port)) !== undefined) continue;
      if (one.pid !== undefined) {
        frozen.push(one.name);
        await one.kill();
      }
    }
    for (const one of this.processes)
      await until(() => one.isReady(), {
        what: `${one.name} serves again`,
        timeoutMs: RECOVERY_MS,
        intervalMs: 100,
      });
    return frozen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sql of this.#pools.values()) await sql.end({ timeout: 1 });
    await this.#releases.disposeAsync();
  }
}

export interface CallInit {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Which of the proxies. */
  proxy?: number;
  timeoutMs?: number;
}

export interface CallAnswer {
  status: number;
  headers: Headers;
  text: string;
  ms: number;
}

/**
 * The duration of a process's health check, ms, without the delay of this process itself; undefined if it takes longer
 * than five times the limit.
 */
export async function healthMs(port: number): Promise<number | undefined> {
  const from = performance.now();
  let [last, late] = [from, 0];
  const ticking = setInterval(() => {
    const now = performance.now();
    late += Math.max(0, now - last - TICK_MS);
    last = now;
  }, TICK_MS);
  try {
    await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(5 * FREEZE_MS) });
    return Math.max(0, performance.now() - from - late);
  } catch {
    return undefined;
  } finally {
    clearInterval(ticking);
  }
}

/** Resident memory of a process, bytes; 0 for one that has ended. */
export function memoryOf(pid: number | undefined): number {
  try {
    return pid === undefined ? 0 : residentBytes(pid) || 0;
  } catch {
    return 0;
  }
}

/** A random client address from a range for tests. */
export function randomAddress(random: Random): string {
  return `198.18.${random.int(0, 255)}.${random.int(1, 254)}`;
}

/**
 * The URLs that the service uses: of its own roles without superuser rights, which the operator's command creates; of
 * the superuser if that command does not exist.
 */
async function ownRoles(control: string, replicas: string): Promise<Record<string, string>> {
  const as = (url: string, role: string, database: string) => {
    const own = new URL(url);
    [own.username, own.password, own.pathname] = [role, "own", `/${database}`];
    return own.href;
  };
  const env = {
    DATABASE_URL: as(control, "basetide_control", "basetide"),
    REPLICA_URL: as(replicas, "basetide_cluster", "postgres"),
  };
  const prepare = (url: string, ...words: string[]) =>
    runOperator({ ...env, SUPERUSER_URL: url }, ["server", "prepare", ...words]);
  const isThere = await prepare(control, "--help").catch(() => "");
  if (!isThere.includes("prepare")) return { DATABASE_URL: control, REPLICA_URL: replicas };
  await prepare(control, "control");
  await prepare(replicas, "replicas", "--dedicated");
  return env;
}

async function createAccount(
  env: Record<string, string>,
  name: string,
  consoleUrl: string,
): Promise<Account> {
  const email = `${name}@example.org`;
  const password = `correct horse ${name}`;
  const said = await runOperator(env, [
    ...["account", "create", "--email", email, "--password", password, "--json"],
  ]);
  const { id, token } = JSON.parse(said) as { id: string; token: string };
  return new Account(id, name, email, password, token, consoleUrl);
}

async function runOperator(env: Record<string, string>, words: string[]): Promise<string> {
  await using program = startProgram("apps/operator/main.ts", words, { ...env, LOG_LEVEL: "silent" });
  const code = await program.exited;
  // Its last output may still be under way.
  await until(() => code !== 0 || program.output() !== "", { what: `operator ${words[0]} prints something` });
  if (code !== 0) throw new Error(`operator ${words.join(" ")} ended with ${code}: ${program.errors()}`);
  return program.output();
}

function tasksBase(name: string, records: number) {
  return {
    name,
    tables: [
      {
        name: "Tasks",
        fields: [
          { name: "Name", type: "singleLineText" },
          { name: "Status", type: "singleLineText" },
          { name: "Amount", type: "number", options: { precision: 0 } },
        ],
        records: Array.from({ length: records }, (_, at) => ({
          fields: { Name: `task ${at}`, Status: "open", Amount: at },
        })),
      },
    ],
  };
}
