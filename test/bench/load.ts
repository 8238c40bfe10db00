/**
 * Runs many bases on one worker process, each at its full rate. Checks that no request is rejected, that no base lags
 * because of the others, and that memory does not grow.
 *
 * Worker, sandbox, control plane and replicas are separate processes, and the sandbox answers over TLS, compressed. One
 * base is first synced alone: its sweeps are the baseline for those of all. CPU is printed per process and request,
 * since that is valid on a busy machine where times are not.
 *
 * Run: `bun run bench load`, with LOAD_SECONDS (600), LOAD_BASES (300), LOAD_RECORDS of each base (1000), and the longest
 * start, LOAD_START_MS (1200000), LOAD_USERS that all bases have together (one each), LOAD_LIMITED for the short run with
 * the rate limit, and these options:
 *
 * - `--short`: CPU per request only, in less than half a minute, without the rate limit; beside the last line of
 *   docs/performance.md. With LOAD_CHANGED=5, a record has changed on 5 of 100 pages;
 * - `--against <folder>`: the short run of this tree and of the tree in that folder at the same time, and the ratios;
 * - `--profile <folder>`: writes a CPU profile of the worker there;
 * - `--statements`: counts and prints the statements of the replicas;
 * - `--release <version>`: adds a line to docs/performance.md.
 */
import { resolve } from "node:path";
import { type Base, listBases } from "../../core/control/bases";
import { childrenPrivateBytes, residentBytes } from "../support/process-usage";
import { quantile } from "../support/quantile";
import type { SandboxProcess } from "../support/sandbox-process";
import { type HeapReport, heapOf } from "./heap-report";
import { type CpuPerRequest, cpuPerRequest, measureShort, runAgainst, runShort } from "./load-cpu";
import { addRelease } from "./load-history";
import { forgetSweeps, type LoadScene, SHAPE, startLoadScene } from "./load-scene";
import { ratio, table } from "./print";
import { profiled } from "./worker-profile";

const SECONDS = Number(process.env.LOAD_SECONDS ?? 600);
const BASES = Number(process.env.LOAD_BASES ?? 300);
/** Requests a second of one base, without turbo. */
const RATE = 3;
const SAMPLE_MS = 2000;
const START_TIMEOUT_MS = Number(process.env.LOAD_START_MS ?? 1_200_000);
/** A sweep reads 100 records a request. */
const SWEEP_SECONDS = SHAPE.records / 100 / RATE;
/** Contains a whole sweep. */
const ALONE_SECONDS = Math.max(30, 2 * SWEEP_SECONDS);
/** Sweeps of each base before it counts. */
const WARM_SWEEPS = SWEEP_SECONDS > 10 ? 1 : 3;
const LAG_LIMIT = 1.1;
/** The allowed growth of the worker's memory in ten minutes, as a share of its memory at the start. */
const GROWTH_LIMIT = 0.05;
const MB = 2 ** 20;

interface Sample {
  seconds: number;
  bytes: number;
}

export async function run(): Promise<boolean> {
  const [against, folder, release] = ["--against", "--profile", "--release"].map(optionOf);
  const profile = folder && resolve(folder);
  if (against) return runAgainst(against);
  if (process.argv.includes("--short")) return runShort({ profile });
  if (release) {
    addRelease({ version: release, us: (await measureShort()).us });
    return true;
  }
  return runLong(profile);
}

async function runLong(profile: string | undefined): Promise<boolean> {
  await using scene = await startLoadScene({
    bases: BASES,
    isUnlimited: false,
    startTimeoutMs: START_TIMEOUT_MS,
  });
  const { source } = scene;
  await source.settings({ latency: { before: { minMs: 50, maxMs: 250 } } });
  await scene.connect(0, WARM_SWEEPS);
  const alone = (await measure(scene, ALONE_SECONDS)).sweepMs[0]!;
  console.log(`alone: a sweep takes ${alone.toFixed(0)} ms`);
  await scene.clone(BASES, WARM_SWEEPS, profile);
  console.log(`measuring ${BASES} bases`);
  const refused: number[] = [];
  const countRefused = async () => void refused.push((await source.logSummary()).rateLimited);
  await countRefused();
  const measuring = () => measure(scene, SECONDS);
  const all = await (profile ? profiled(scene.worker, profile, measuring) : measuring());
  await countRefused();
  console.log("measured");
  const { worker, pids } = scene;
  const heap = await heapOf(worker);
  const backends = childrenPrivateBytes(pids.replicas);
  // A worker that is killed would seem to hold its bases for a while, and each would have to wait.
  const stoppedAt = performance.now();
  worker.kill("SIGTERM");
  await worker.exited;
  const stopMs = performance.now() - stoppedAt;
  return report(all, { alone, stopMs, refused }, await source.logSummary(), backends, heap);
}

/** Returns the argument after this option. */
function optionOf(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

interface Measured extends CpuPerRequest {
  /** The mean duration of the last sweeps of each base that has completed one. */
  sweepMs: number[];
  memory: Sample[];
}

async function measure(scene: LoadScene, seconds: number): Promise<Measured> {
  const memory: Sample[] = [];
  await forgetSweeps(scene.fleet.ctx.db);
  const from = performance.now();
  const elapsed = () => (performance.now() - from) / 1000;
  const measured = await cpuPerRequest(scene, async () => {
    while (elapsed() < seconds) {
      memory.push({ seconds: elapsed(), bytes: residentBytes(scene.pids.worker) });
      await Bun.sleep(SAMPLE_MS);
    }
  });
  const bases = await listBases(scene.fleet.ctx.db);
  return {
    ...measured,
    sweepMs: bases.filter(hasSwept).map(meanSweepMs),
    memory,
  };
}

function report(
  all: Measured,
  { alone, stopMs, refused }: { alone: number; stopMs: number; refused: number[] },
  log: Awaited<ReturnType<SandboxProcess["logSummary"]>>,
  backends: number[],
  heap: HeapReport,
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
      [
        "429 answers",
        log.rateLimited,
        `${refused[0]} before that time, ${log.rateLimited - refused[1]!} after it`,
      ],
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
      [
        "  its heap in use",
        `${(heap.heapBytes / MB).toFixed(0)} MB`,
        `${(heap.capacityBytes / MB).toFixed(0)} MB with free cells`,
      ],
      ["  after a collection", `${(heap.residentBytes / MB).toFixed(0)} MB`, ""],
      ["stop of the worker", `${(stopMs / 1000).toFixed(1)} s`, "with what it hands over"],
      ["replica connections", backends.length, `${(mean(backends) / MB).toFixed(1)} MB each`],
      ...Object.entries(all.us).map(([part, us]) => [
        `CPU of the ${part}`,
        `${us.toFixed(0)} µs a request`,
        `${((us * rate) / 1e6).toFixed(3)} of a core`,
      ]),
    ],
  );
  return lag.isWithin && growth.isWithin && log.rateLimited === 0 && most <= 5;
}

function hasSwept({ recentSweepMs }: Base): boolean {
  return recentSweepMs.length > 0;
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
