/**
 * The short form of `load.ts`: CPU per request of one worker, without the rate limit unless LOAD_LIMITED is set.
 *
 * Times within one run are comparable, and those of different runs only on the same idle machine. Two versions are
 * compared by running both at the same time (`--against`): they then share the machine's noise.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Dump } from "../../apps/sandbox/dump";
import { residentBytes } from "../support/process-usage";
import { repoRoot } from "../support/source-files";
import { lastRelease } from "./load-history";
import { cpuOf, type LoadScene, type MeasuredPart, startLoadScene } from "./load-scene";
import { table } from "./print";

const BASES = Number(process.env.LOAD_BASES ?? 16);
const SECONDS = Number(process.env.LOAD_SECONDS ?? 10);
/** CI waits for it. A busy machine takes longer to start, but could not be compared either. */
const START_TIMEOUT_MS = Number(process.env.LOAD_START_MS ?? 20_000);
/** Sweeps of each base before the measurement, and how long all are swept then, s. */
const WARM_SWEEPS = 3;
const MB = 2 ** 20;
const WARM_SECONDS = Number(process.env.LOAD_WARM_SECONDS ?? 0);
/** Of 100 pages that are read, how many contain a record that has changed. */
const CHANGED_PERCENT = Number(process.env.LOAD_CHANGED ?? 0);
const CHANGE_EVERY_MS = 100;
/** The parts whose cost is ours, and what a request may cost on a machine like that of docs/performance.md, µs. */
const LIMITS = { worker: 250, "control plane": 120, replicas: 40 };
const OURS = Object.keys(LIMITS) as (keyof typeof LIMITS)[];

export interface CpuPerRequest {
  requests: number;
  seconds: number;
  /** µs of user and system time. */
  us: Record<MeasuredPart, number>;
}

interface ShortRun extends CpuPerRequest {
  /** The worker's memory at the end. */
  workerBytes: number;
}

/** Measures what `work` takes. */
export async function cpuPerRequest(scene: LoadScene, work: () => Promise<unknown>): Promise<CpuPerRequest> {
  const from = {
    cpu: cpuOf(scene),
    requests: (await scene.source.logSummary()).requests,
    at: performance.now(),
  };
  await scene.statements?.reset();
  await work();
  const [cpu, to] = [cpuOf(scene), await scene.source.logSummary()];
  await scene.statements?.print("statements of the replicas");
  const requests = to.requests - from.requests;
  const parts = Object.keys(cpu) as MeasuredPart[];
  return {
    requests,
    seconds: (performance.now() - from.at) / 1000,
    us: Object.fromEntries(
      parts.map((part) => [part, (1e6 * (cpu[part] - from.cpu[part])) / requests]),
    ) as CpuPerRequest["us"],
  };
}

/** @param options.profile a folder for a CPU profile of the worker */
export async function measureShort(options: { profile?: string | undefined } = {}): Promise<ShortRun> {
  await using scene = await startLoadScene({
    bases: BASES,
    isUnlimited: !process.env.LOAD_LIMITED,
    startTimeoutMs: START_TIMEOUT_MS,
    ...options,
  });
  const from = performance.now();
  await scene.connect(BASES - 1, WARM_SWEEPS);
  console.log(
    `${BASES} bases swept ${WARM_SWEEPS} times after ${Math.round((performance.now() - from) / 1000)} s`,
  );
  await Bun.sleep(1000 * WARM_SECONDS);
  const change = CHANGED_PERCENT > 0 ? await changer(scene) : async () => {};
  const measured = await cpuPerRequest(scene, async () => {
    const until = performance.now() + 1000 * SECONDS;
    while (performance.now() < until) {
      await change();
      await Bun.sleep(CHANGE_EVERY_MS);
    }
  });
  const workerBytes = residentBytes(scene.pids.worker);
  // A worker that is killed would seem to hold its bases for a while; and it writes its profile when it ends.
  scene.worker.kill("SIGTERM");
  await scene.worker.exited;
  return { ...measured, workerBytes };
}

/** Returns what changes as many records as LOAD_CHANGED asks for the pages that were read since its last call. */
async function changer({ source }: LoadScene): Promise<() => Promise<void>> {
  const bases = (await source.call("GET", "bases")) as { id: string }[];
  const tables: { path: string; ids: string[] }[] = [];
  for (const { id } of bases) {
    const { tables: dumped } = (await source.call("GET", `dump/${id}`)) as Dump;
    for (const table of dumped)
      tables.push({
        path: `bases/${id}/tables/${table.id}/records`,
        ids: table.records.map((one) => one.id),
      });
  }
  let asked = (await source.logSummary()).requests;
  let changed = 0;
  let due = 0;
  return async () => {
    const { requests } = await source.logSummary();
    due += ((requests - asked) * CHANGED_PERCENT) / 100;
    asked = requests;
    for (; due >= 1; due--) {
      const { path, ids } = tables[changed++ % tables.length]!;
      // A step that is coprime to the number of records reaches each of them, on another page each time.
      const id = ids[(changed * 37) % ids.length]!;
      await source.call("PATCH", path, { records: [{ id, fields: { Notes: `change ${changed}` } }] });
    }
  };
}

/** Prints the short run beside the last release. Never fails because of its figures: machines differ. */
export async function runShort(options: { profile?: string | undefined }): Promise<boolean> {
  const measured = await measureShort(options);
  if (process.env.LOAD_RESULT) writeFileSync(process.env.LOAD_RESULT, JSON.stringify(measured));
  const last = lastRelease();
  table(
    [
      `CPU per request, ${Math.round(measured.requests / measured.seconds)} requests/s, after ${WARM_SECONDS} s`,
      "now",
      last?.version ?? "no release",
      "limit",
    ],
    OURS.map((part) => [
      part,
      `${measured.us[part].toFixed(0)} µs`,
      last ? `${last.us[part]} µs` : "",
      `${LIMITS[part]} µs`,
    ]),
  );
  console.log(`memory of the worker: ${(measured.workerBytes / MB).toFixed(0)} MB`);
  return true;
}

/** Runs this tree and the one in `folder` at the same time, each in its own process. */
export async function runAgainst(folder: string): Promise<boolean> {
  const results = mkdtempSync(join(tmpdir(), "load-"));
  try {
    const [ours, theirs] = await Promise.all(
      [repoRoot, resolve(folder)].map((tree, index) => runIn(tree, join(results, String(index)))),
    );
    table(
      ["CPU per request", "this tree", folder, "ratio"],
      OURS.map((part) => [
        part,
        `${ours!.us[part].toFixed(0)} µs`,
        `${theirs!.us[part].toFixed(0)} µs`,
        (ours!.us[part] / theirs!.us[part]).toFixed(3),
      ]),
    );
    console.log(`${ours!.requests} and ${theirs!.requests} requests`);
  } finally {
    rmSync(results, { recursive: true, force: true });
  }
  return true;
}

async function runIn(tree: string, result: string): Promise<CpuPerRequest> {
  const run = Bun.spawn([process.execPath, "test/bench/main.ts", "load", "--short"], {
    cwd: tree,
    env: { LOAD_START_MS: "600000", ...process.env, LOAD_RESULT: result },
    stdout: "ignore",
    stderr: "inherit",
  });
  if ((await run.exited) !== 0) throw new Error(`the run in ${tree} failed`);
  return JSON.parse(readFileSync(result, "utf8")) as CpuPerRequest;
}
