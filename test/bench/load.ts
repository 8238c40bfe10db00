/**
 * Runs many bases on one worker process, each at its full rate. Checks that no request is rejected, that no base lags
 * because of the others, and that memory does not grow.
 *
 * Worker, sandbox, control plane and replicas are separate processes. One base is first synced alone: its sweeps are
 * the baseline for those of all. CPU is printed per process and request, since that is valid on a busy machine where
 * times are not. Run: `bun run bench load`, with LOAD_SECONDS (600) and LOAD_BASES (300).
 */
import postgres from "postgres";
import { type Base, createBase, listBases } from "../../core/control/bases";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";
import { childrenPrivateBytes, cpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { quantile } from "../support/quantile";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { startWorkerProcess } from "../support/worker-process";
import { ratio, table } from "./print";

const SECONDS = Number(process.env.LOAD_SECONDS ?? 600);
const BASES = Number(process.env.LOAD_BASES ?? 300);
const SHAPE = { records: 1000, tables: 2 };
/** Requests a second of one base, without turbo. */
const RATE = 3;
const ALONE_SECONDS = 30;
const SAMPLE_MS = 2000;
const CONNECT_AT_ONCE = 8;
const START_TIMEOUT_MS = 600_000;
const LAG_LIMIT = 1.1;
/** The allowed growth of the worker's memory in ten minutes, as a share of its memory at the start. */
const GROWTH_LIMIT = 0.05;
const MB = 2 ** 20;

type SandboxFleet = Fleet<SandboxProcess>;
interface Sample {
  seconds: number;
  bytes: number;
}

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const control = await startTestServer();
  releases.defer(() => control.stop());
  const replicas = await startTestServer();
  releases.defer(() => replicas.stop());
  const source = releases.use(await startSandboxProcess());
  const before = { minMs: 25, maxMs: 125 };
  await source.settings({ latency: { before, after: before } });
  const env = { REPLICA_URL: replicas.url, WORKER_CONCURRENCY: String(BASES) };
  const fleet = releases.use(await startFleet({ source, databaseUrl: control.url, env, workers: 0 }));
  const worker = releases.use(await startWorkerProcess(fleet, env));
  const servers = {
    worker: worker.pid,
    sandbox: source.pid,
    "control plane": await serverPid(control.url),
    replicas: await serverPid(replicas.url),
  };
  const sources: string[] = [];
  for (let seed = 0; seed < BASES; seed++) sources.push(await source.generate({ ...SHAPE, seed }));

  const first = await fleet.connect(sources[0]!);
  await sweepsCompleted(fleet, [first.id], 3);
  const alone = (await measure(fleet, servers, ALONE_SECONDS)).sweepMs[0]!;
  console.log(`alone: a sweep takes ${alone.toFixed(0)} ms`);

  await inTurn(sources.slice(1), CONNECT_AT_ONCE, async (sourceBaseId) => {
    // Each base has its own user: the source's other limit, of 50 a second per user, is not measured here.
    const user = { id: `usr${sourceBaseId.slice(3)}`, email: `${sourceBaseId}@example.org` };
    const { token } = (await source.call("POST", "keys", { user })) as { token: string };
    const settings = { live: false };
    await createBase(fleet.ctx, first.accountId, {
      platform: "airtable",
      apiKey: token,
      sourceBaseId,
      settings,
    });
  });
  await sweepsCompleted(
    fleet,
    (await listBases(fleet.ctx.db)).map((base) => base.id),
    3,
  );
  const all = await measure(fleet, servers, SECONDS);
  const backends = childrenPrivateBytes(servers.replicas);
  // A worker that is killed would seem to hold its bases for a while, and each would have to wait.
  worker.kill("SIGTERM");
  await worker.exited;
  return report(all, alone, await source.logSummary(), backends);
}

interface Measured {
  seconds: number;
  requests: number;
  /** The mean duration of each base's last sweeps. */
  sweepMs: number[];
  cpu: Record<string, number>;
  memory: Sample[];
}

async function measure(
  fleet: SandboxFleet,
  processes: Record<string, number>,
  seconds: number,
): Promise<Measured> {
  const cpuNow = () =>
    Object.fromEntries(Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid)]));
  const from = {
    cpu: cpuNow(),
    requests: (await fleet.sandbox.logSummary()).requests,
    at: performance.now(),
  };
  const elapsed = () => (performance.now() - from.at) / 1000;
  const memory: Sample[] = [];
  while (elapsed() < seconds) {
    memory.push({ seconds: elapsed(), bytes: residentBytes(processes.worker!) });
    await Bun.sleep(SAMPLE_MS);
  }
  const to = { cpu: cpuNow(), requests: (await fleet.sandbox.logSummary()).requests, seconds: elapsed() };
  return {
    seconds: to.seconds,
    requests: to.requests - from.requests,
    sweepMs: (await listBases(fleet.ctx.db)).map(meanSweepMs),
    cpu: Object.fromEntries(Object.entries(to.cpu).map(([name, cpu]) => [name, cpu - from.cpu[name]!])),
    memory,
  };
}

function report(
  all: Measured,
  alone: number,
  log: Awaited<ReturnType<SandboxProcess["logSummary"]>>,
  backends: number[],
): boolean {
  const lag = ratio(mean(all.sweepMs) / alone, LAG_LIMIT);
  const most = Math.max(...Object.values(log.bases).map((base) => base.maxPerSecond));
  const size = mean(all.memory.map((sample) => sample.bytes));
  const perTenMinutes = slope(all.memory) * 600;
  const growth = ratio(perTenMinutes / size, GROWTH_LIMIT);
  const rate = all.requests / all.seconds;
  table(
    [`${BASES} bases for ${Math.round(all.seconds)} s`, "", "ratio"],
    [
      ["requests a second", rate.toFixed(0), `${(rate / (BASES * RATE)).toFixed(3)} of ${BASES * RATE}`],
      ["429 answers", log.rateLimited, ""],
      ["most requests of a base in a second, of 5", most, (most / 5).toFixed(3)],
      ["sweep, mean", `${mean(all.sweepMs).toFixed(0)} ms`, `${lag.text} of one alone (limit ${LAG_LIMIT})`],
      [
        "sweep, p95 of the bases",
        `${quantile(all.sweepMs, 0.95).toFixed(0)} ms`,
        (quantile(all.sweepMs, 0.95) / alone).toFixed(3),
      ],
      ["worker's memory", `${(size / MB).toFixed(0)} MB`, `${(size / MB / BASES).toFixed(2)} MB a base`],
      [
        "  its slope in ten minutes",
        `${(perTenMinutes / MB).toFixed(1)} MB`,
        `${growth.text} (limit ${GROWTH_LIMIT})`,
      ],
      ["replica connections", backends.length, `${(mean(backends) / MB).toFixed(1)} MB each`],
      ...Object.entries(all.cpu).map(([name, cpu]) => [
        `CPU of the ${name}`,
        `${((1e6 * cpu) / all.requests).toFixed(0)} µs a request`,
        `${(cpu / all.seconds).toFixed(3)} of a core`,
      ]),
    ],
  );
  return lag.isWithin && growth.isWithin && log.rateLimited === 0 && most <= 5;
}

/** Waits until each of these bases has completed `count` sweeps. */
async function sweepsCompleted(fleet: SandboxFleet, ids: string[], count: number): Promise<void> {
  await until(
    async () => {
      const bases = (await listBases(fleet.ctx.db)).filter((base) => ids.includes(base.id));
      return bases.every((base) => base.recentSweepMs.length >= count);
    },
    { what: `${count} sweeps of ${ids.length} bases`, timeoutMs: START_TIMEOUT_MS, intervalMs: 1000 },
  );
}

async function inTurn<T>(items: T[], atOnce: number, work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = [...items];
  const one = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function serverPid(url: string): Promise<number> {
  const sql = postgres(url, { max: 1 });
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const parent = parentOf(row!.pid);
  await sql.end();
  return parent;
}

function meanSweepMs({ recentSweepMs }: Base): number {
  return mean(recentSweepMs);
}

function mean(numbers: number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

/** Bytes a second, by least squares over the second half: the first half warms up. */
function slope(samples: Sample[]): number {
  const late = samples.slice(Math.floor(samples.length / 2));
  const [x, y] = [mean(late.map((one) => one.seconds)), mean(late.map((one) => one.bytes))];
  const above = late.reduce((sum, one) => sum + (one.seconds - x) * (one.bytes - y), 0);
  return above / late.reduce((sum, one) => sum + (one.seconds - x) ** 2, 0);
}
