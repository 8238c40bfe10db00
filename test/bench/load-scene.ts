/**
 * The service that `load.ts` measures: one worker, the sandbox, the control plane and the replicas, each in processes
 * of their own.
 */
import postgres from "postgres";
import { createBase, listBases } from "../../core/control/bases";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { type Program, startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";

/** Pages of 100 records: a sweep of the default shape takes ten requests. */
const SHAPE = { records: Number(process.env.LOAD_RECORDS ?? 1000), tables: 2 };
const CONNECT_AT_ONCE = 8;

export type MeasuredPart = "worker" | "control plane" | "replicas" | "sandbox";

export interface LoadScene extends AsyncDisposable {
  fleet: Fleet<SandboxProcess>;
  source: SandboxProcess;
  worker: Program;
  pids: Record<MeasuredPart, number>;
  /** Connects this many more bases, and waits until each has completed `sweeps` sweeps. */
  connect(count: number, sweeps: number): Promise<void>;
}

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
  const [control, replicas] = await Promise.all([startTestServer(), startTestServer()]);
  releases.defer(() => control.stop());
  releases.defer(() => replicas.stop());
  const source = releases.use(await startSandboxProcess({ tls: true }));
  const env = { REPLICA_URL: replicas.url, WORKER_CONCURRENCY: String(options.bases) };
  const fleet = releases.use(await startFleet({ source, databaseUrl: control.url, env, workers: 0 }));
  const { config } = fleet.ctx;
  const worker = releases.use(
    startProgram(
      "test/bench/load-worker.ts",
      [],
      {
        ...env,
        ...source.clientEnv,
        DATABASE_URL: config.databaseUrl!,
        SECRET_KEY: config.secretKey!,
        WORKER_PORT: "0",
        LOG_LEVEL: "info",
        LOAD_UNLIMITED: options.isUnlimited ? "true" : undefined,
      },
      options.profile ? ["--cpu-prof", "--cpu-prof-md", `--cpu-prof-dir=${options.profile}`] : [],
    ),
  );
  await worker.says("started");
  if (options.isUnlimited) await source.settings({ rateLimitOff: true });
  let seed = 0;
  const first = await fleet.connect(await source.generate({ ...SHAPE, seed: seed++ }));
  const connectOne = async () => {
    const sourceBaseId = await source.generate({ ...SHAPE, seed: seed++ });
    // Each base has its own user: the source's other limit, of 50 a second per user, is not measured here.
    const user = { id: `usr${sourceBaseId.slice(3)}`, email: `${sourceBaseId}@example.org` };
    const { token } = (await source.call("POST", "keys", { user })) as { token: string };
    await createBase(fleet.ctx, first.accountId, {
      platform: "airtable",
      apiKey: token,
      sourceBaseId,
      settings: { live: false },
    });
  };
  const pids = {
    worker: worker.pid,
    "control plane": await serverPid(control.url),
    replicas: await serverPid(replicas.url),
    sandbox: source.pid,
  };
  const started = releases.move();
  return {
    fleet,
    source,
    worker,
    pids,
    async connect(count, sweeps) {
      let left = count;
      const some = async () => {
        while (left-- > 0) await connectOne();
      };
      await Promise.all(Array.from({ length: CONNECT_AT_ONCE }, some));
      await until(
        async () =>
          (await listBases(fleet.ctx.db)).every(({ recentSweepMs }) => recentSweepMs.length >= sweeps),
        { what: `${sweeps} sweeps of each base`, timeoutMs: options.startTimeoutMs, intervalMs: 500 },
      );
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Returns the CPU seconds of each part since it started. */
export function cpuOf({ pids }: LoadScene): Record<MeasuredPart, number> {
  return Object.fromEntries(Object.entries(pids).map(([part, pid]) => [part, cpuSeconds(pid)])) as Record<
    MeasuredPart,
    number
  >;
}

async function serverPid(url: string): Promise<number> {
  const sql = postgres(url, { max: 1 });
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const parent = parentOf(row!.pid);
  await sql.end();
  return parent;
}
