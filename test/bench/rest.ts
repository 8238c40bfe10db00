/**
 * Measures live bases at rest: CPU, memory and heap of a worker in a process of its own, CPU and statements of the
 * control plane, CPU and connections of the server of replicas. Each figure is measured with two numbers of bases: the
 * difference is what a base costs, the rest what a worker costs without bases.
 *
 * One base is connected and synced normally, and cloned (`clone-bases.ts` says what that means). The arrival of
 * notifications is recorded in the control plane instead of awaited: the feed of each base is read every five minutes.
 * A worker that starts then, as after an update, is measured once all bases have come to rest.
 *
 * Run: `bun run bench rest`, with REST_BASES (`300,1000`: the two numbers), REST_MINUTES (5, one read of every feed),
 * REST_RECORDS (100 of each base) and REST_MOST (100, max_connections of the replicas' server). With few bases,
 * REST_READS (0) lets notifications cause as many reads a second as many bases would: 10,000 read 33. REST_PROFILE
 * names a folder for a CPU profile of the worker with all bases. REST_FOLDER names the folder for the databases
 * (`database-folder.ts`): `REST_FOLDER=/mnt/bench REST_BASES=2000,10000 bun run bench rest`. With REST_FRESH, it measures
 * a base that nobody has edited yet instead (`rest-fresh.ts`).
 */
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { recommendedNaptime } from "../../core/control/placement/cluster-check";
import { createLogger } from "../../core/log";
import { startLiveFleet } from "../support/live-fleet";
import { until } from "../support/poll";
import { cpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { startProgram } from "../support/program";
import { proveAddress } from "../support/prove-address";
import { startSandboxProcess } from "../support/sandbox-process";
import { unsafeButFast } from "../support/server";
import { cloneUpTo } from "./clone-bases";
import { databaseFolder } from "./database-folder";
import { type HeapReport, heapOf } from "./heap-report";
import { ratio, table } from "./print";
import { connectPattern } from "./rest-bases";
import { runFresh } from "./rest-fresh";
import { WORKER_ENVIRONMENT } from "./runtime-environment";
import { countingStatements, StatementCounts } from "./statements";

const [FEWER = 300, BASES = 1000] = process.env.REST_BASES?.split(",").map(Number) ?? [];
const MOST = Number(process.env.REST_MOST ?? 100);
const MINUTES = Number(process.env.REST_MINUTES ?? 5);
const READS = Number(process.env.REST_READS ?? 0);
const RECORDS = Number(process.env.REST_RECORDS ?? 100);
const PROFILE = process.env.REST_PROFILE;
const FOLDER = process.env.REST_FOLDER;
/** Each reads its feed every five minutes, far below its user's limit of 50 requests a second. */
const BASES_OF_A_USER = 20;
const DATABASE_BYTES = 12 * 1024 ** 2;
const SAMPLE_MS = 100;
const PROGRESS_MS = 20_000;
/** The first leases of ten thousand bases. */
const STARTS_MS = 3600_000;
/** A base that is not at rest keeps its connection to the replica. The reads of bases at rest are shorter than this. */
const READ_MS = 3000;
/** No base has such a connection for this long: all are at rest. */
const SETTLED_CHECKS = 5;
const MB = 2 ** 20;
/** What many bases at rest may cost. */
const GOAL = { bases: 10_000, cores: 0.2, bytes: 2 * 2 ** 30, connections: 50 };
/** Classes shown of the heap: those with the most objects per base. */
const SHOWN = 12;

interface Measured {
  bases: number;
  workerCores: number;
  controlCores: number;
  replicaCores: number;
  bytes: number;
  heap: HeapReport;
  /** Statements of the control plane, a second. */
  statements: number;
  /** Logins to replicas, a second. */
  logins: number;
  /** The most at any time. */
  replicaConnections: number;
  controlConnections: number;
}

export async function run(): Promise<boolean> {
  if (process.env.REST_FRESH) return runFresh();
  await using releases = new AsyncDisposableStack();
  const log = createLogger("fatal", "bench");
  const folder = releases.use(databaseFolder("rest", FOLDER, BASES * DATABASE_BYTES + 2 * 1024 ** 3));
  const settings = {
    ...unsafeButFast,
    max_wal_size: "512MB",
    autovacuum_naptime: recommendedNaptime(BASES),
  };
  const [replicas, control] = await Promise.all([
    startEmbeddedPostgres({
      dataDir: join(folder.path, "replicas", "postgres"),
      port: 0,
      log,
      settings: { ...settings, max_connections: String(MOST), file_copy_method: folder.copyMethod },
    }),
    startEmbeddedPostgres({
      dataDir: join(folder.path, "control", "postgres"),
      port: 0,
      log,
      settings: { ...settings, ...countingStatements },
    }),
  ]);
  releases.defer(() => replicas.stop());
  releases.defer(() => control.stop());
  const admins = [replicas, control].map(({ url }) =>
    postgres(url, { max: 4, connection: { application_name: "bench" }, onnotice: () => {} }),
  );
  const [admin, statistics] = admins as [postgres.Sql, postgres.Sql];
  releases.defer(() => void admins.map((sql) => sql.end({ timeout: 1 })));
  const statements = await StatementCounts.on(statistics);
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
        ...WORKER_ENVIRONMENT,
        WORKER_PORT: "0",
        LOG_LEVEL: "info",
      },
      profile ? ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${profile}`] : [],
    );
    await worker.says("started");
    return worker;
  };
  const connecting = await startWorker();
  await proveAddress(fleet.ctx);
  const pattern = await connectPattern(fleet, source, RECORDS);
  connecting.kill("SIGTERM");
  await connecting.exited;

  const measure = async (bases: number): Promise<Measured> => {
    const cloning = performance.now();
    await cloneUpTo({ fleet, source, admin, pattern, basesOfAUser: BASES_OF_A_USER }, bases);
    console.log(`\n${bases} bases after ${seconds(cloning)}`);
    const [now] = await db<{ at: Date }[]>`select now() as at`;
    const started = performance.now();
    const loginsBefore = await logins();
    await using worker = await startWorker(bases === BASES ? PROFILE : undefined);
    const readFeeds = async () => {
      const [row] = await db<{ count: number }[]>`
        select count(*)::int as count from live_feeds where read_at > ${now!.at}`;
      return row!.count;
    };
    const progress = setInterval(
      async () =>
        console.log(`${seconds(started)}: ${await readFeeds()} started, ${mb(residentBytes(worker.pid))}`),
      PROGRESS_MS,
    );
    await until(async () => (await readFeeds()) >= bases, {
      what: "all feeds are read",
      timeoutMs: STARTS_MS,
      intervalMs: 1000,
    });
    clearInterval(progress);
    console.log(`all have started after ${seconds(started)}`);
    await settled();
    const startMs = (1000 * cpuSeconds(worker.pid)) / bases;
    const loginsEach = ((await logins()) - loginsBefore) / bases;
    console.log(
      `and are at rest after ${seconds(started)}: ${startMs.toFixed(1)} ms of CPU and ${loginsEach.toFixed(1)} logins for each`,
    );
    const before = await counters(worker.pid);
    await statements.reset();
    const most = await sampled(() => (READS > 0 ? notify(MINUTES * 60_000) : Bun.sleep(MINUTES * 60_000)));
    const after = await counters(worker.pid);
    const statementRate = await statements.print(`${bases} bases at rest: statements of the control plane`);
    const elapsed = (after.at - before.at) / 1000;
    const perSecond = (of: "worker" | "control" | "replicas" | "logins") =>
      (after[of] - before[of]) / elapsed;
    const bytes = residentBytes(worker.pid);
    const heap = await heapOf(worker);
    if (PROFILE) {
      worker.kill("SIGTERM");
      await worker.exited;
    }
    return {
      bases,
      workerCores: perSecond("worker"),
      controlCores: perSecond("control"),
      replicaCores: perSecond("replicas"),
      bytes,
      heap,
      statements: statementRate,
      logins: perSecond("logins"),
      ...most,
    };
  };
  const settled = async () => {
    for (let quiet = 0; quiet < SETTLED_CHECKS; await Bun.sleep(1000)) {
      const [row] = await admin<{ count: number }[]>`
        select count(*)::int as count from pg_stat_activity
        where datname ~ '^bt_' and backend_start < now() - ${READ_MS} * interval '1 ms'`;
      quiet = row!.count === 0 ? quiet + 1 : 0;
    }
  };
  /** Lets READS bases a second read their feeds. */
  const notify = async (forMs: number) => {
    const until = performance.now() + forMs;
    const ids = (await db<{ id: string }[]>`select id from bases order by random()`).map(({ id }) => id);
    for (let nth = 0; performance.now() < until; nth++) {
      await db`select pg_notify('basetide_notification', ${ids[nth % ids.length]!})`;
      await Bun.sleep(1000 / READS);
    }
  };
  const logins = async () => {
    const [row] = await admin<{ logins: number }[]>`
      select coalesce(sum(sessions) filter (where datname ~ '^bt_'), 0)::int as logins from pg_stat_database`;
    return row!.logins;
  };
  const counters = async (pid: number) => ({
    at: performance.now(),
    // Of threads that have ended, too: the runtime starts and ends some while a worker is at rest.
    worker: cpuSeconds(pid),
    replicas: cpuSeconds(servers[0]!),
    control: cpuSeconds(servers[1]!),
    logins: await logins(),
  });
  /** The most connections while `work` runs. */
  const sampled = async (work: () => Promise<unknown>) => {
    const most = { replicaConnections: 0, controlConnections: 0 };
    let isOver = false;
    const count = async (sql: postgres.Sql) => {
      const [row] = await sql<{ count: number }[]>`
        select count(*)::int as count from pg_stat_activity
        where backend_type = 'client backend' and application_name <> 'bench'`;
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
  console.log(`bases with an error: ${after!.failing}`);
  return isWithinGoal(fewer, all) && after!.failing === 0;
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
    ["worker: memory after GC, MB", ({ heap }) => heap.residentBytes / MB, (value) => value.toFixed(1)],
    ["worker: heap, MB", ({ heap }) => heap.capacityBytes / MB, (value) => value.toFixed(1)],
    ["worker: heap in use, MB", ({ heap }) => heap.heapBytes / MB, (value) => value.toFixed(1)],
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
  const classes = Object.keys(all.heap.objects)
    .map((name) => ({ name, each: line(fewer, all, ({ heap }) => heap.objects[name] ?? 0).slope }))
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
