/**
 * Measures live bases at rest: CPU, memory and heap of a worker in a process of its own, CPU and statements of the
 * control plane, CPU and connections of the server of replicas. Each figure is measured with two numbers of bases: the
 * difference is what a base costs, the rest what a worker costs without bases.
 *
 * Each base is connected and synced normally, LANES at a time. The arrival of notifications is recorded in the control
 * plane instead of awaited; from then on the base's feed is read every five minutes. Then the worker is restarted, as
 * by an update, and measured once all bases have come to rest.
 *
 * Run: `bun run bench rest`, with REST_BASES (1000), REST_FEWER (a third of them), REST_MINUTES (5, one read of every
 * feed), REST_RECORDS (100 of each base) and REST_MOST (100, max_connections of the replicas' server). A database takes
 * 10 MB, in memory if there is room. REST_PROFILE names a folder for a CPU profile of the worker with all bases.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { startLiveFleet } from "../support/live-fleet";
import { until } from "../support/poll";
import { cpuSeconds, exactCpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { type Program, startProgram } from "../support/program";
import { startSandboxProcess } from "../support/sandbox-process";
import { scratchFolder } from "../support/scratch";
import { unsafeButFast } from "../support/server";
import { ratio, table } from "./print";
import { HEAP_MARK, type HeapReport } from "./rest-worker";

const BASES = Number(process.env.REST_BASES ?? 1000);
const FEWER = Number(process.env.REST_FEWER ?? Math.ceil(BASES / 3));
const MOST = Number(process.env.REST_MOST ?? 100);
const MINUTES = Number(process.env.REST_MINUTES ?? 5);
const RECORDS = Number(process.env.REST_RECORDS ?? 100);
const PROFILE = process.env.REST_PROFILE;
const TABLES = 2;
const FIELDS = 15;
/** How many bases are connected at the same time. */
const LANES = 24;
/** Bases of one user of the source: all bases of a user share 50 requests a second. */
const BASES_OF_A_USER = 20;
const DATABASE_BYTES = 12 * 1024 ** 2;
const SAMPLE_MS = 100;
const PROGRESS_MS = 20_000;
/** After their first read of the feed, bases that a new worker holds come to rest. */
const SETTLE_MS = 45_000;
const MB = 2 ** 20;
/** What many bases at rest may cost. */
const GOAL = { bases: 10_000, cores: 0.2, bytes: 2 * 2 ** 30, connections: 50 };
/** Classes shown of the heap: those with the most objects per base. */
const SHOWN = 12;
const SHOWN_STATEMENTS = 10;

interface Measured {
  bases: number;
  workerCores: number;
  controlCores: number;
  replicaCores: number;
  bytes: number;
  heapBytes: number;
  objects: Record<string, number>;
  /** Statements of the control plane, a second. */
  statements: number;
  /** Logins to replicas, a second. */
  logins: number;
  /** The most at any time. */
  replicaConnections: number;
  controlConnections: number;
}

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const log = createLogger("fatal", "bench");
  const folder = scratchFolder("rest", BASES * DATABASE_BYTES + 2 * 1024 ** 3);
  console.log(`databases are in ${folder}`);
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const settings = { ...unsafeButFast, max_wal_size: "512MB" };
  const [replicas, control] = await Promise.all([
    startEmbeddedPostgres({
      dataDir: join(folder, "replicas", "postgres"),
      port: 0,
      log,
      settings: { ...settings, max_connections: String(MOST) },
    }),
    startEmbeddedPostgres({
      dataDir: join(folder, "control", "postgres"),
      port: 0,
      log,
      settings: { ...settings, shared_preload_libraries: "pg_stat_statements" },
    }),
  ]);
  releases.defer(() => replicas.stop());
  releases.defer(() => control.stop());
  const admins = [replicas, control].map(({ url }) =>
    postgres(url, { max: 1, connection: { application_name: "bench" }, onnotice: () => {} }),
  );
  const [admin, statistics] = admins as [postgres.Sql, postgres.Sql];
  releases.defer(() => void admins.map((sql) => sql.end({ timeout: 1 })));
  await statistics`create extension if not exists pg_stat_statements`;
  const servers = await Promise.all(admins.map(serverPid));
  const source = releases.use(await startSandboxProcess({ tls: true }));
  await source.settings({ rateLimitOff: true });
  const env = {
    REPLICA_URL: replicas.url,
    WORKER_CONCURRENCY: String(BASES),
    ACCOUNT_DATABASES: "100000",
    CONNECTION_OVERCOMMIT: "100000",
  };
  const fleet = releases.use(
    await startLiveFleet({ source, databaseUrl: control.url, env, workers: 0, leavesBases: true }),
  );
  const { db, config } = fleet.ctx;
  const startWorker = async (profile?: string) => {
    const worker = startProgram(
      "test/bench/rest-worker.ts",
      [],
      {
        ...env,
        ...source.clientEnv,
        DATABASE_URL: config.databaseUrl!,
        SECRET_KEY: config.secretKey!,
        CONSOLE_URL: config.consoleUrl,
        WORKER_PORT: "0",
        LOG_LEVEL: "info",
      },
      profile ? ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${profile}`] : [],
    );
    await worker.says("started");
    return worker;
  };
  const keys: string[] = [];
  for (let user = 0; user < Math.ceil(BASES / BASES_OF_A_USER); user++) {
    const of = { id: `usr${String(user).padStart(14, "0")}`, email: `${user}@example.org`, name: `U${user}` };
    keys.push(((await source.call("POST", "keys", { user: of })) as { token: string }).token);
  }
  const fields = Array.from({ length: FIELDS }, (_, index) => ({
    name: `Field ${index}`,
    type: index % 3 === 1 ? "number" : "singleLineText",
    ...(index % 3 === 1 && { options: { precision: 0 } }),
  }));
  const records = Array.from({ length: RECORDS / TABLES }, (_, index) => ({
    fields: { "Field 0": `Task ${index}`, "Field 1": index },
  }));
  const tables = Array.from({ length: TABLES }, (_, index) => ({ name: `Table ${index}`, fields, records }));
  const connected = { begun: 0, live: 0, failed: 0 };
  const isOn = async (id: string) =>
    (await db`select from live_feeds where base_id = ${id} and state = 'on' and gap_since is null`).length >
    0;
  const connectUpTo = async (count: number) => {
    while (connected.begun < count) {
      const key = keys[connected.begun++ % keys.length]!;
      try {
        const { baseId } = (await source.call("POST", "bases", { tables })) as { baseId: string };
        const { id } = await fleet.connect(baseId, { live: true, turbo: true }, key);
        await until(() => isOn(id), { what: `${id} is live`, timeoutMs: 300_000, intervalMs: 250 });
        // As if a notification had arrived: the feed is no longer polled.
        await db`update live_feeds set notified_at = now() where base_id = ${id}`;
        await db`select pg_notify('basetide_notification', ${id})`;
        connected.live++;
      } catch (error) {
        connected.failed++;
        console.error(`not connected: ${error instanceof Error ? error.message : error}`);
      }
    }
  };
  const measure = async (bases: number): Promise<Measured> => {
    const started = performance.now();
    const progress = setInterval(
      () => console.log(`${seconds(started)}: ${JSON.stringify(connected)}`),
      PROGRESS_MS,
    );
    {
      await using connecting = await startWorker();
      await Promise.all(Array.from({ length: LANES }, () => connectUpTo(bases)));
      clearInterval(progress);
      console.log(
        `${connected.live} bases are connected after ${seconds(started)}; the worker has ${mb(residentBytes(connecting.pid))}`,
      );
      connecting.kill("SIGTERM");
      await connecting.exited;
    }
    const [now] = await db<{ at: Date }[]>`select now() as at`;
    await using worker = await startWorker(bases === BASES ? PROFILE : undefined);
    await until(
      async () => (await db`select from live_feeds where read_at > ${now!.at}`).length >= connected.live,
      { what: "all feeds are read", timeoutMs: 600_000, intervalMs: 1000 },
    );
    await Bun.sleep(SETTLE_MS);
    const before = await counters(worker.pid);
    await statistics`select pg_stat_statements_reset()`;
    const most = await sampled(() => Bun.sleep(MINUTES * 60_000));
    const after = await counters(worker.pid);
    const statements = await statistics<{ calls: number; ms: number; query: string }[]>`
      select calls::float8 as calls, total_exec_time as ms, query from pg_stat_statements
      where toplevel and query !~ 'pg_stat_' order by total_exec_time desc`;
    const elapsed = (after.at - before.at) / 1000;
    const perSecond = (of: "worker" | "control" | "replicas" | "logins") =>
      (after[of] - before[of]) / elapsed;
    const bytes = residentBytes(worker.pid);
    const heap = await heapOf(worker);
    console.log(`\n${bases} bases at rest: statements of the control plane, by their time`);
    table(
      ["calls/s", "ms/s", "statement"],
      statements
        .slice(0, SHOWN_STATEMENTS)
        .map(({ calls, ms, query }) => [
          (calls / elapsed).toFixed(1),
          (ms / elapsed).toFixed(2),
          query.replaceAll(/\s+/g, " ").slice(0, 110),
        ]),
    );
    if (PROFILE) {
      worker.kill("SIGTERM");
      await worker.exited;
    }
    return {
      bases: connected.live,
      workerCores: perSecond("worker"),
      controlCores: perSecond("control"),
      replicaCores: perSecond("replicas"),
      bytes,
      ...heap,
      statements: statements.reduce((sum, { calls }) => sum + calls, 0) / elapsed,
      logins: perSecond("logins"),
      ...most,
    };
  };
  const counters = async (pid: number) => {
    const [row] = await admin<{ logins: number }[]>`
      select coalesce(sum(sessions) filter (where datname ~ '^bt_'), 0)::int as logins from pg_stat_database`;
    return {
      at: performance.now(),
      worker: exactCpuSeconds(pid),
      replicas: cpuSeconds(servers[0]!),
      control: cpuSeconds(servers[1]!),
      logins: row!.logins,
    };
  };
  /** The most connections while `work` runs. */
  const sampled = async (work: () => Promise<unknown>) => {
    const most = { replicaConnections: 0, controlConnections: 0 };
    let isOver = false;
    const count = async (sql: postgres.Sql) => {
      const [row] = await sql<{ count: number }[]>`
        select count(*)::int as count from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`;
      return row!.count;
    };
    const sampling = (async () => {
      while (!isOver) {
        most.replicaConnections = Math.max(most.replicaConnections, await count(admin));
        most.controlConnections = Math.max(most.controlConnections, await count(statistics));
        await Bun.sleep(SAMPLE_MS);
      }
    })();
    await work();
    isOver = true;
    await sampling;
    return most;
  };
  const [fewer, all] = [await measure(FEWER), await measure(BASES)];
  show(fewer, all);
  const [after] = await db<{ failing: number }[]>`
    select count(*) filter (where error_code is not null)::int as failing from bases`;
  console.log(`bases: ${connected.failed} not live in time, ${after!.failing} with an error`);
  return isWithinGoal(fewer, all) && connected.live === BASES && after!.failing === 0;
}

/** What a base adds, and a worker without bases. */
function line(fewer: Measured, all: Measured, of: (measured: Measured) => number) {
  const slope = (of(all) - of(fewer)) / (all.bases - fewer.bases);
  return { slope, fixed: of(all) - slope * all.bases };
}

function show(fewer: Measured, all: Measured): void {
  const rows: [string, (measured: Measured) => number, (value: number) => string][] = [
    ["worker: CPU, ms/s", ({ workerCores }) => 1000 * workerCores, (value) => value.toFixed(2)],
    ["worker: memory, MB", ({ bytes }) => bytes / MB, (value) => value.toFixed(1)],
    ["worker: heap in use, MB", ({ heapBytes }) => heapBytes / MB, (value) => value.toFixed(1)],
    ["control plane: CPU, ms/s", ({ controlCores }) => 1000 * controlCores, (value) => value.toFixed(2)],
    ["control plane: statements/s", ({ statements }) => statements, (value) => value.toFixed(1)],
    ["replicas: CPU, ms/s", ({ replicaCores }) => 1000 * replicaCores, (value) => value.toFixed(2)],
    ["replicas: logins/s", ({ logins }) => logins, (value) => value.toFixed(2)],
    ["connections to replicas, most", ({ replicaConnections }) => replicaConnections, String],
    ["connections of the control plane", ({ controlConnections }) => controlConnections, String],
  ];
  console.log();
  table(
    ["", `${fewer.bases} bases`, `${all.bases} bases`, "a base adds", `${GOAL.bases} bases`],
    rows.map(([name, of, text]) => {
      const { slope, fixed } = line(fewer, all, of);
      const isCount = text === String;
      return [
        name,
        text(of(fewer)),
        text(of(all)),
        isCount ? "" : slope.toPrecision(3),
        isCount ? "" : text(fixed + slope * GOAL.bases),
      ];
    }),
  );
  console.log("\nobjects in the worker's heap, per base");
  const classes = Object.keys(all.objects)
    .map((name) => ({ name, each: line(fewer, all, ({ objects }) => objects[name] ?? 0).slope }))
    .toSorted((a, b) => b.each - a.each);
  console.log(
    classes
      .slice(0, SHOWN)
      .map(({ name, each }) => `${name} ${each.toFixed(1)}`)
      .join(", "),
  );
}

function isWithinGoal(fewer: Measured, all: Measured): boolean {
  const at = (of: (measured: Measured) => number) => {
    const { slope, fixed } = line(fewer, all, of);
    return fixed + slope * GOAL.bases;
  };
  const goals = [
    ["CPU of the worker", ratio(at(({ workerCores }) => workerCores) / GOAL.cores, 1)],
    ["memory", ratio(at(({ bytes }) => bytes) / GOAL.bytes, 1)],
    ["connections to replicas", ratio(all.replicaConnections / GOAL.connections, 1)],
  ] as const;
  for (const [name, { text }] of goals) console.log(`${GOAL.bases} bases, ${name}: ${text} of the limit`);
  return goals.every(([, { isWithin }]) => isWithin);
}

async function heapOf(worker: Program): Promise<Pick<Measured, "heapBytes" | "objects">> {
  worker.kill("SIGUSR2");
  await worker.says(HEAP_MARK, 60_000);
  const text = () => worker.output().split(HEAP_MARK).at(-1)!;
  await until(() => text().includes("\n"), { what: "the heap is printed" });
  return JSON.parse(text().split("\n")[0]!) as HeapReport;
}

async function serverPid(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return parentOf(row!.pid);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(0)} s`;
}

function mb(bytes: number): string {
  return `${(bytes / MB).toFixed(0)} MB`;
}
