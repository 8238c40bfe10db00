/**
 * The whole service as in production, for fault injection: workers, two proxies and a console, each a supervised
 * process, a Postgres for the control plane and one or more for the replicas, and the source. Every connection between
 * them passes a fault-injecting proxy.
 */
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { createAccount, createToken } from "../../../core/control/accounts";
import { addCluster } from "../../../core/control/placement";
import { createSecretBox } from "../../../core/secrets";
import type { FaultProxy } from "../../support/fault-proxy";
import { freePort } from "../../support/free-port";
import { type MortalPostgres, mortalPostgres } from "../../support/mortal-postgres";
import { peerProcess, processTree } from "../../support/peer-process";
import { until } from "../../support/poll";
import { clockMs } from "../../support/stall-watch";
import { ArrivalCheck } from "./arrivals";
import { installAudit, type Writer } from "./audit";
import { ledgerTable } from "./contract";
import type { Part } from "./parts";
import { type ChaosSource, startSource } from "./source";
import { type Role, type Supervised, supervise } from "./supervised";
import { type Mode, WatchedBase } from "./watched-base";

const NETWORK = "80±20";
const SIDE_RECORDS = 130;
const BUSY_RECORDS = 50;
/** The apparent difference between the database's clock and ours on one machine. */
const CLOCK_MS = 2;
/** Six processes start at once on a busy machine, ms. */
const FIRST_START_MS = 60_000;
/** A first sync on a busy machine, ms. */
const FIRST_SYNC_MS = 60_000;

export interface ServiceOptions {
  /** The mode of each base. */
  modes: Mode[];
  /** Default 2. */
  workers?: number;
  /** Servers of replicas, which share the bases; default 1. */
  clusters?: number;
  /** A file for the output of ended processes. */
  logFile?: string | undefined;
  env?: Record<string, string>;
  /** The network to the source: default `80±20`; `loopback` is without delay and TLS. */
  network?: string | undefined;
}

/** A server of replicas. */
export interface Cluster {
  name: string;
  part: Part;
  postgres: MortalPostgres;
  /** The proxy of all processes to it. */
  line: FaultProxy;
  /** The harness's own connection, without faults, to the current server. */
  ownLine: FaultProxy;
}

/** A base in the management API's answers. */
export interface ApiBase {
  id: string;
  state: string;
  indicator: { color: string; reason: string };
}

export class Service implements AsyncDisposable {
  readonly bases: WatchedBase[] = [];
  readonly arrivals = new ArrivalCheck();
  #releases = new AsyncDisposableStack();
  #token = "";
  /**
   * By the proxy's port towards a cluster's server: the owners of the connection, the latest last. A lease closes its
   * connections, and another may use the port within seconds.
   */
  readonly #writers = new Map<Cluster, Map<number, Writer[]>>();

  private constructor(
    readonly control: MortalPostgres,
    readonly clusters: readonly [Cluster, ...Cluster[]],
    readonly source: ChaosSource,
    readonly processes: Supervised[],
  ) {}

  static async start(options: ServiceOptions): Promise<Service> {
    await using releases = new AsyncDisposableStack();
    const { workers = 2, clusters: clusterCount = 1 } = options;
    const [control, first, ...more] = await Promise.all([
      mortalPostgres(),
      startCluster("default"),
      ...Array.from({ length: clusterCount - 1 }, (_, index) => startCluster(`cluster ${index + 2}`)),
    ]);
    releases.use(control);
    for (const { postgres } of [first, ...more]) releases.use(postgres);
    const source = releases.use(
      await startSource(options.network === "loopback" ? undefined : (options.network ?? NETWORK)),
    );
    const env = {
      REPLICA_URL: first.line.over(first.postgres.url),
      SECRET_KEY: randomBytes(32).toString("base64"),
      DATA_DIR: join(tmpdir(), "basetide-unused"),
      LOG_LEVEL: "info",
      UPSTREAM_TIMEOUT_MS: "5000",
      // Users' schema changes are detected soon.
      SCHEMA_POLL_SECONDS: "3",
      ...options.env,
    };
    const processes: Supervised[] = [];
    const add = async (name: string, role: Role, port: number, consoleUrl: string) => {
      const { url: upstream, line } = await source.way(name);
      const ways = { control: await control.line(), source: line };
      const own = {
        ...env,
        ...source.clientEnv,
        CONSOLE_URL: consoleUrl,
        DATABASE_URL: ways.control.over(control.url),
        UPSTREAMS: `api.airtable.com=${upstream},content.airtable.com=${upstream}`,
      };
      processes.push(releases.use(supervise(name, role, port, ways, own, options.logFile)));
    };
    const consolePort = await freePort();
    const consoleUrl = `http://127.0.0.1:${consolePort}`;
    await add("console", "console", consolePort, consoleUrl);
    for (let number = 1; number <= workers; number++)
      await add(`worker ${number}`, "worker", await freePort(), consoleUrl);
    for (const number of [1, 2]) await add(`proxy ${number}`, "proxy", await freePort(), consoleUrl);
    const service = new Service(control, [first, ...more], source, processes);
    service.#releases = releases.move();
    try {
      await service.#begin(options.modes, env.SECRET_KEY);
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  of(role: Role): Supervised[] {
    return this.processes.filter((one) => one.role === role);
  }

  /** Runs `work` on the control plane, directly on its server. */
  async onControl<T>(work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    const sql = postgres(this.control.url, { max: 1, onnotice: () => {} });
    try {
      return await work(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  /** The process at the client's end of a connection to a cluster's proxy. */
  clientOf({ line }: Cluster, clientPort: number): Supervised | undefined {
    // A worker syncs suspects of earlier crashes in a child process, which counts as part of it.
    const byPid = new Map(
      this.processes.flatMap((one) =>
        one.pid ? processTree(one.pid).map((pid) => [pid, one] as const) : [],
      ),
    );
    const pid = peerProcess(clientPort, line.port, byPid.keys());
    return pid === undefined ? undefined : byPid.get(pid);
  }

  /**
   * Reads the new records of every replica's audit. Fails while a server is unreachable, after it has read the others'.
   */
  async readAudits(): Promise<void> {
    const read = this.bases.map((base) =>
      base.audit.readOn(base.owner, (port, at) => this.#writerAt(base.cluster, port, at)),
    );
    await Promise.allSettled(read);
    await Promise.all(read);
  }

  /** The owner of the connection at that time; undefined if unknown. */
  #writerAt(cluster: Cluster, port: number, at: Date): Writer["who"] {
    return this.#writers
      .get(cluster)
      ?.get(port)
      ?.findLast(({ since }) => since <= at.getTime() + CLOCK_MS)?.who;
  }

  /** Checks the requests that the source has received since the last call. */
  async checkArrivals(): Promise<void> {
    const { arrivals, refused, stalls } = await this.source.takeArrivals();
    for (const base of this.bases)
      this.arrivals.add(base.facts.sourceBaseId, arrivals[base.facts.sourceBaseId] ?? [], stalls);
    if (refused > 0) this.arrivals.violations.push(`I4: ${refused} answers 429`);
  }

  async apiBases(): Promise<ApiBase[]> {
    const answer = await this.#api("GET", "bases");
    if (!answer.ok) throw new Error(`The console answers ${answer.status}`);
    return (await answer.json()) as ApiBase[];
  }

  /** Waits until every base is green, without manual repair. @returns those that are not after `timeoutMs`, and why */
  async untilGreen(timeoutMs: number): Promise<string[]> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      // The console may be restarting.
      const bases = await this.apiBases().catch(() => undefined);
      const others = bases?.filter(({ indicator }) => indicator.color !== "green");
      if (others?.length === 0) return [];
      if (performance.now() > deadline) {
        return (
          others?.map(({ id, indicator }) => `${id} is ${indicator.color}: ${indicator.reason}`) ?? [
            "the console does not answer",
          ]
        );
      }
      await Bun.sleep(250);
    }
  }

  /** All violations since the last call. */
  takeViolations(): string[] {
    const kept = [
      ...this.bases.flatMap((base) => [base.violations, base.audit.violations, base.contract.violations]),
      this.arrivals.violations,
      ...this.processes.map((one) => one.faults),
    ];
    return kept.flatMap((found) => found.splice(0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const base of this.bases) await base.close();
    await this.#releases.disposeAsync();
  }

  /** Creates an account and its bases, and waits for their first syncs. */
  async #begin(modes: Mode[], secretKey: string): Promise<void> {
    for (const cluster of this.clusters) this.#noteWriters(cluster);
    for (const one of this.processes) await one.untilReady(FIRST_START_MS);
    this.#token = await this.onControl(async (db) => {
      const account = await createAccount(db, { email: "chaos@example.org", password: "correct horse" });
      const secrets = createSecretBox([secretKey]);
      for (const { name, line, postgres } of this.clusters.slice(1))
        await addCluster({ db, secrets }, { name, region: "chaos", adminUrl: line.over(postgres.url) });
      return createToken(db, account.id, "chaos");
    });
    // The next database is placed where the fewest are.
    for (const mode of modes) await this.#connect(mode);
    await Promise.all(this.bases.map((base) => this.#awaitFirstSync(base)));
  }

  #noteWriters(cluster: Cluster): void {
    const byPort = new Map<number, Writer[]>();
    this.#writers.set(cluster, byPort);
    cluster.line.onConnect = (clientPort, targetPort) => {
      const client = this.clientOf(cluster, clientPort);
      const writers = byPort.get(targetPort) ?? [];
      byPort.set(targetPort, writers);
      writers.push({
        since: clockMs(),
        who: client && { id: `${client.name} (${client.pid})`, isWorker: client.role === "worker" },
      });
    };
  }

  async #connect(mode: Mode): Promise<void> {
    const { baseId: sourceBaseId } = await this.source.call<{ baseId: string }>(
      "POST",
      "bases",
      sourceBase(mode),
    );
    const settings = {
      turbo: mode === "turbo",
      rapid: mode === "rapid",
      live: mode === "live",
      // Until the audit records everything that happens to the replica.
      paused: true,
    };
    const answer = await this.#api("POST", "bases", {
      platform: "airtable",
      api_key: this.source.key,
      base_id: sourceBaseId,
      settings,
    });
    if (!answer.ok) throw new Error(`A base is not connected: ${answer.status} ${await answer.text()}`);
    const { id } = (await answer.json()) as { id: string };
    const { url } = (await (await this.#api("GET", `bases/${id}/credentials`)).json()) as { url: string };
    const cluster = this.clusters.find(({ line }) => String(line.port) === new URL(url).port)!;
    const readerUrl = cluster.ownLine.over(url);
    const ownerUrl = new URL(cluster.ownLine.over(cluster.postgres.url));
    ownerUrl.pathname = new URL(readerUrl).pathname;
    const facts = { id, sourceBaseId, mode, readerUrl, ownerUrl: ownerUrl.href };
    const base = new WatchedBase(facts, cluster, this.source, {
      // Names hold in every second base, and follow in the others.
      arePinned: this.bases.length % 2 === 1,
      manage: (...call) => this.#manage(...call),
    });
    this.bases.push(base);
    await installAudit(base.owner);
    await base.contract.begin(await this.source.dump(sourceBaseId));
    await this.#api("PATCH", `bases/${id}`, { paused: false });
    base.learn(await this.source.dump(sourceBaseId));
  }

  async #awaitFirstSync(base: WatchedBase): Promise<void> {
    const { id, mode } = base.facts;
    await until(async () => (await this.apiBases()).some((one) => one.id === id && one.state === "active"), {
      what: `the first sync of ${mode}`,
      timeoutMs: FIRST_SYNC_MS,
      intervalMs: 200,
    });
    base.watch();
  }

  async #manage(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.#api(method, path, body);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  #api(method: string, path: string, body?: unknown): Promise<Response> {
    const [console] = this.of("console");
    return fetch(`http://127.0.0.1:${console!.port}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
  }
}

async function startCluster(name: string): Promise<Cluster> {
  const postgres = await mortalPostgres();
  const [line, ownLine] = [await postgres.line(), await postgres.line()];
  return { name, part: `cluster ${name}`, postgres, line, ownLine };
}

/** One table that clients write to, one with a pulse, one with lookups into the first, and the contract's. */
function sourceBase(mode: Mode) {
  const name = mode.padEnd(6, "0");
  const [tableId, tokenId, linkId] = [`tblBusy0000${name}`, `fldToken000${name}`, `fldLink0000${name}`];
  const many = <T>(length: number, make: (index: number) => T) => Array.from({ length }, (_, at) => make(at));
  const busyId = (index: number) => `rec${name}${String(index).padStart(8, "0")}`;
  return {
    name: `Chaos ${mode}`,
    tables: [
      {
        id: tableId,
        name: "Busy",
        fields: [
          { id: tokenId, name: "Token", type: "singleLineText" },
          { name: "Kind", type: "singleLineText" },
        ],
        records: many(BUSY_RECORDS, (index) => ({ id: busyId(index), fields: { Token: `first ${index}` } })),
      },
      {
        name: "Pulse",
        fields: [{ name: "Beat", type: "number", options: { precision: 0 } }],
        records: [{ fields: { Beat: 0 } }],
      },
      {
        name: "Side",
        fields: [
          { name: "Note", type: "singleLineText" },
          {
            id: linkId,
            name: "Busy",
            type: "multipleRecordLinks",
            options: { linkedTableId: tableId, isOneWay: true },
          },
          {
            name: "Tokens",
            type: "multipleLookupValues",
            options: { recordLinkFieldId: linkId, fieldIdInLinkedTable: tokenId },
          },
        ],
        records: many(SIDE_RECORDS, (index) => ({
          fields: { Note: `note ${index}`, Busy: [busyId(index % BUSY_RECORDS)] },
        })),
      },
      ledgerTable(mode),
    ],
  };
}
