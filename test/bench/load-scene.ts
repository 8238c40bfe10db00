/**
 * The service that `load.ts` measures: one worker, the sandbox, the control plane and the replicas, each in processes
 * of their own.
 *
 * LOAD_FOLDER names the folder for the replicas (`database-folder.ts`).
 */
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import type { Db } from "../../core/context";
import { createBase, listBases } from "../../core/control/bases";
import { recommendedNaptime } from "../../core/control/placement/cluster-check";
import { createLogger } from "../../core/log";
import { type Fleet, startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { putFirst } from "../support/priority";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { type Program, startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer, unsafeButFast } from "../support/server";
import { cloneUpTo } from "./clone-bases";
import { databaseFolder } from "./database-folder";
import { WORKER_ENVIRONMENT } from "./runtime-environment";
import { countingStatements, StatementCounts } from "./statements";

/** Pages of 100 records: a sweep of the default shape takes ten requests. */
export const SHAPE = { records: Number(process.env.LOAD_RECORDS ?? 1000), tables: 2 };
const CONNECT_AT_ONCE = 8;
const CLONE_AT_ONCE = 4;
const PROGRESS_MS = 20_000;
/** Users of the source that all bases have together. */
const USERS = Number(process.env.LOAD_USERS ?? 0);
/** A base is read three times a second; its user's limit of 50 requests a second is not measured here. */
const BASES_OF_A_USER = 8;
/**
 * Workers use three tenths of a server's connections. A base that is swept all the time needs one, so this leaves each
 * base its own, as docs/scaling.md asks of an installation.
 */
const CONNECTIONS_PER_BASE = 4;
/** Of a replica: an empty database, and a record of the default shape. */
const DATABASE_BYTES = 12 * 1024 ** 2;
const RECORD_BYTES = 2048;

export type MeasuredPart = "worker" | "control plane" | "replicas" | "sandbox";

export interface LoadScene extends AsyncDisposable {
  fleet: Fleet<SandboxProcess>;
  source: SandboxProcess;
  /** The one that runs now. */
  readonly worker: Program;
  /** It serves its metrics there. */
  workerPort: number;
  readonly pids: Record<MeasuredPart, number>;
  /** Counts those of the replicas, with `--statements`. */
  statements: StatementCounts | undefined;
  /** Connects this many more bases, and waits until each has completed `sweeps` sweeps. */
  connect(count: number, sweeps: number): Promise<void>;
  /**
   * Clones the first base until there are `count`, and waits until each has completed `sweeps` sweeps with a new worker.
   *
   * @param profile a folder for a CPU profile of that worker, see `worker-profile.ts`
   */
  clone(count: number, sweeps: number, profile?: string): Promise<void>;
}

const countsStatements = process.argv.includes("--statements");

/**
 * @param options.bases that will be connected
 * @param options.isUnlimited requests wait for no rate limit, neither here nor in the sandbox
 * @param options.profile a folder for a CPU profile of the worker, written when it ends
 */
export async function startLoadScene(options: {
  bases: number;
  isUnlimited: boolean;
  profile?: string | undefined;
  /** Longest time until all bases have completed their sweeps, ms. */
  startTimeoutMs: number;
}): Promise<LoadScene> {
  await using releases = new AsyncDisposableStack();
  const room = options.bases * (DATABASE_BYTES + SHAPE.records * RECORD_BYTES);
  const folder = releases.use(databaseFolder("load", process.env.LOAD_FOLDER, room));
  const [control, replicas] = await Promise.all([
    startTestServer(),
    startEmbeddedPostgres({
      dataDir: join(folder.path, "postgres"),
      port: 0,
      log: createLogger("error", "bench"),
      settings: {
        ...unsafeButFast,
        max_wal_size: "512MB",
        max_connections: String(Math.max(1000, CONNECTIONS_PER_BASE * options.bases)),
        file_copy_method: folder.copyMethod,
        // Three I/O workers would read for a thousand backends, and each of them counts as one process here.
        io_method: "sync",
        autovacuum_naptime: recommendedNaptime(options.bases),
        ...(countsStatements ? countingStatements : {}),
      },
    }),
  ]);
  releases.defer(() => control.stop());
  releases.defer(() => replicas.stop());
  const source = releases.use(await startSandboxProcess({ tls: true }));
  // Before the worker, too: with the same rank, a collection of the worker's heap would delay arrivals by half a second.
  putFirst(source.pid, 2);
  // This process connects the bases, and its connections would time out while they start.
  putFirst(process.pid);
  putFirst(await serverPid(control.url));
  const env = { REPLICA_URL: replicas.url, WORKER_CONCURRENCY: String(options.bases) };
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: control.url, env, workers: 0, leavesBases: true }),
  );
  const { config } = fleet.ctx;
  const workerPort = await freePort();
  const startWorker = async (
    profiles: { whole?: string | undefined; measured?: string | undefined } = {},
  ) => {
    const started = startProgram(
      "test/bench/load-worker.ts",
      [],
      {
        ...env,
        ...source.clientEnv,
        DATABASE_URL: config.databaseUrl!,
        SECRET_KEY: config.secretKey!,
        WORKER_PORT: String(workerPort),
        ...WORKER_ENVIRONMENT,
        LOG_LEVEL: "info",
        LOAD_UNLIMITED: options.isUnlimited ? "true" : undefined,
        LOAD_PROFILE: profiles.measured,
      },
      profiles.whole ? ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${profiles.whole}`] : [],
    );
    await started.says("started");
    // It has a core for itself in production. Here, each of a thousand backends is scheduled like it.
    putFirst(started.pid);
    return started;
  };
  let worker = await startWorker({ whole: options.profile });
  releases.defer(() => worker[Symbol.asyncDispose]());
  if (options.isUnlimited) await source.settings({ rateLimitOff: true });
  let seed = 0;
  const first = await fleet.connect(await source.generate({ ...SHAPE, seed: seed++ }));
  const connectOne = async () => {
    const index = seed++;
    const sourceBaseId = await source.generate({ ...SHAPE, seed: index });
    // Unless LOAD_USERS is set, each base has its own user, and the source's other limit, of 50 a second per user, does not matter.
    const number = USERS ? index % USERS : index;
    const user = { id: `usr${String(number).padStart(14, "0")}`, email: `user${number}@example.org` };
    const { token } = (await source.call("POST", "keys", { user })) as { token: string };
    await createBase(fleet.ctx, first.accountId, {
      platform: "airtable",
      apiKey: token,
      sourceBaseId,
      settings: { live: false },
    });
  };
  const serverPids = {
    "control plane": await serverPid(control.url),
    replicas: await serverPid(replicas.url),
    sandbox: source.pid,
  };
  const swept = async (sweeps: number) => {
    const { db } = fleet.ctx;
    const ready = async () => (await listBases(db)).filter((base) => base.recentSweepMs.length >= sweeps);
    const from = performance.now();
    const progress = setInterval(
      async () => console.log(`after ${secondsSince(from)} s, ${(await ready()).length} have been swept`),
      PROGRESS_MS,
    );
    try {
      await until(async () => (await ready()).length === (await listBases(db)).length, {
        what: `${sweeps} sweeps of each base`,
        timeoutMs: options.startTimeoutMs,
        intervalMs: 500,
      });
    } finally {
      clearInterval(progress);
    }
  };
  let statements: StatementCounts | undefined;
  if (countsStatements) {
    const sql = postgres(replicas.url, { max: 1, onnotice: () => {} });
    releases.defer(() => sql.end());
    statements = await StatementCounts.on(sql);
  }
  const started = releases.move();
  return {
    fleet,
    statements,
    source,
    workerPort,
    get worker() {
      return worker;
    },
    get pids() {
      return { worker: worker.pid, ...serverPids };
    },
    async connect(count, sweeps) {
      let left = count;
      const some = async () => {
        while (left-- > 0) await connectOne();
      };
      await Promise.all(Array.from({ length: USERS ? 1 : CONNECT_AT_ONCE }, some));
      await swept(sweeps);
    },
    async clone(count, sweeps, profile) {
      worker.kill("SIGTERM");
      await worker.exited;
      const from = performance.now();
      const admin = postgres(replicas.url, { max: CLONE_AT_ONCE, onnotice: () => {} });
      await cloneUpTo({ fleet, source, admin, pattern: first, basesOfAUser: BASES_OF_A_USER }, count);
      await admin.end();
      console.log(`${count} bases cloned after ${secondsSince(from)} s`);
      await forgetSweeps(fleet.ctx.db);
      worker = await startWorker({ measured: profile });
      await swept(1);
      console.log(`all have been swept after ${secondsSince(from)} s`);
      await swept(sweeps);
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Clears the durations of completed sweeps, so that only later ones are counted. */
export async function forgetSweeps(db: Db): Promise<void> {
  await db`update bases set recent_sweep_ms = '{}'`;
}

/** Returns the CPU seconds of each part since it started. */
export function cpuOf({ pids }: LoadScene): Record<MeasuredPart, number> {
  return Object.fromEntries(Object.entries(pids).map(([part, pid]) => [part, cpuSeconds(pid)])) as Record<
    MeasuredPart,
    number
  >;
}

function secondsSince(from: number): string {
  return ((performance.now() - from) / 1000).toFixed(0);
}

async function serverPid(url: string): Promise<number> {
  const sql = postgres(url, { max: 1 });
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const parent = parentOf(row!.pid);
  await sql.end();
  return parent;
}
