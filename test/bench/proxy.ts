/**
 * Measures the overhead of the proxy: the latency that it adds to a read and to a single-record write compared with a
 * direct request, the CPU that it uses for a read compared with a minimal forwarder, its throughput compared with that,
 * and its memory while 1 GB streams through it.
 *
 * Proxy, source and forwarder are separate processes. Direct and proxied requests alternate over several bases, so that
 * none waits for its rate limit. Run: `bun run bench proxy`; `BENCH_ONLY=reads,memory` measures these parts only, each of
 * which takes about a minute. `BENCH_AGAINST=<folder>` measures reads, writes, `stream` and `refused` of the proxy of the
 * tree in that folder, too, on as many bases of its own.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pause } from "../../core/control/bases";
import { type Fleet, startFleet } from "../support/fleet";
import { cpuSeconds } from "../support/process-usage";
import { quantile } from "../support/quantile";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { userOf } from "./clone-bases";
import { ratio, table } from "./print";
import { type Bench, type BenchBase, call, pacer, send, sendToAll, type Way, waysOf } from "./proxy-requests";
import { refusedWrites, writeStream } from "./proxy-statements";
import { IMAGE_ENVIRONMENT } from "./runtime-environment";
import { countingStatements } from "./statements";

const BASES = 50;
const AGAINST = process.env.BENCH_AGAINST;
/** Bases whose requests are measured: one after the other, so that none waits for another. */
const MEASURED_BASES = 12;
/** Requests to each base whose CPU is measured, in each of the rounds. */
const CPU_REQUESTS = 25;
const CPU_ROUNDS = 3;
/** How long the processes' CPU without requests is measured, ms. */
const IDLE_MS = 3000;
/**
 * Requests to each base that are not measured: they open connections, and compile the code. A proxy runs for weeks, but
 * only thousands of requests make the runtime's compiler start: after 150 to each base, it still took up to 170 µs of each
 * request.
 */
const WARM_UP = 400;
const READS = 800;
const WRITES = 400;
const THROUGHPUT_MS = 3000;
const CONNECTIONS = [1, 16, 64];
const STREAM_MEGABYTES = 1024;

const LIMITS = {
  "read p50, ms": 0.6,
  "read p99, ms": 3,
  "read CPU beyond a bare forwarder's, µs": 250,
  "write p50, ms": 3,
  "write p99, ms": 10,
  "throughput, share of a bare forwarder's": 0.6,
  "writes on all bases, share of the quota": 0.9,
  // Those to one record overlap, and some are read again.
  "statements of a write": 4,
  // A base is looked up every few seconds, however many wait.
  "statements of a write that waits": 0.5,
  "statements of a refused write": 0.5,
  "peak memory while 1 GB streams, MB": 200,
};
export type Figure = keyof typeof LIMITS;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer({ settings: countingStatements });
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  await source.settings({ rateLimitOff: true });
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: server.url, leavesBases: server.kind !== "given" }),
  );
  const forwarder = await startPrinting(releases, [`${import.meta.dir}/forwarder.ts`, source.url]);
  const bare = `http://127.0.0.1:${forwarder.port}`;
  const upstreams = `api.airtable.com=${source.url},content.airtable.com=${source.url},long.airtable.com=${bare}`;
  const proxy = await startProxyProcess(releases, fleet, upstreams);
  const address = `http://127.0.0.1:${proxy.port}`;
  const proxied = `${address}/api.airtable.com`;
  const pids = { proxied: proxy.pid, bare: forwarder.pid };
  const bench: Bench = {
    source,
    proxied,
    bare,
    pids,
    bases: await connectBases(fleet, 0),
    against: AGAINST === undefined ? undefined : await startAgainst(releases, fleet, upstreams, AGAINST),
  };

  const figures: [Figure, number][] = [];
  // In this order, because the first also compiles the code.
  const parts: Record<string, () => Promise<[Figure, number][]>> = {
    throughput: async () => [["throughput, share of a bare forwarder's", await throughput(bench)]],
    cpu: async () => {
      await warmUp(bench, "read");
      return [["read CPU beyond a bare forwarder's, µs", await addedCpu(bench, "read")]];
    },
    reads: async () => {
      await warmUp(bench, "read");
      return addedLatency(bench, "read", READS);
    },
    writes: async () => {
      await warmUp(bench, "write");
      return addedLatency(bench, "write", WRITES);
    },
    "write-cpu": async () => {
      await warmUp(bench, "write");
      await addedCpu(bench, "write");
      return [];
    },
    stream: async () => {
      await warmUp(bench, "write");
      return writeStream(bench, server);
    },
    refused: () => refusedWrites(bench, server, fleet),
    memory: async () => [
      ["peak memory while 1 GB streams, MB", await peakMemory(`${address}/long.airtable.com`, proxy.pid)],
    ],
  };
  const chosen = process.env.BENCH_ONLY?.split(",") ?? Object.keys(parts);
  const unknown = chosen.find((name) => !(name in parts));
  if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(parts)}`);
  for (const [name, measure] of Object.entries(parts))
    if (chosen.includes(name)) figures.push(...(await measure()));
  return report(figures);
}

/**
 * Starts a proxy in front of the fleet's source. `BENCH_PROFILE` names a folder for a CPU profile of it, which is written
 * at its end.
 */
export function startProxyProcess(
  releases: AsyncDisposableStack,
  { ctx }: Fleet<SandboxProcess>,
  upstreams: string,
  env: Record<string, string> = {},
  tree = resolve(import.meta.dir, "../.."),
) {
  const folder = process.env.BENCH_PROFILE;
  const profile = folder ? ["--cpu-prof", `--cpu-prof-dir=${folder}`] : [];
  return startPrinting(releases, [...profile, `${tree}/apps/proxy/main.ts`], {
    DATABASE_URL: ctx.config.databaseUrl!,
    SECRET_KEY: ctx.config.secretKey!,
    DATA_DIR: ctx.config.dataDir,
    UPSTREAMS: upstreams,
    PROXY_PORT: "0",
    LOG_LEVEL: "info",
    ...env,
  });
}

/** Starts the proxy of another tree, with bases of its own. */
async function startAgainst(
  releases: AsyncDisposableStack,
  fleet: Fleet<SandboxProcess>,
  upstreams: string,
  folder: string,
): Promise<Bench["against"]> {
  const { port, pid } = await startProxyProcess(releases, fleet, upstreams, {}, resolve(folder));
  return { url: `http://127.0.0.1:${port}/api.airtable.com`, pid, bases: await connectBases(fleet, BASES) };
}

/** Bases that are connected, read once, and then idle. @param from number of the first one */
async function connectBases(fleet: Fleet<SandboxProcess>, from: number): Promise<BenchBase[]> {
  const connect = async (_: unknown, nth: number) => {
    const index = from + nth;
    const id = await fleet.sandbox.generate({ records: 100, tables: 1, seed: index + 1 });
    // The other limit of the source, of 50 requests a second of a user, is not measured here.
    const { key } = await userOf(fleet.sandbox, index);
    const base = await fleet.connect(id, {}, key);
    await fleet.synced(base.id);
    await pause(fleet.ctx, base);
    const path = `/v0/${id}/Projects`;
    const answer = await call("GET", `${fleet.sandbox.url}${path}?maxRecords=1`, key);
    const { records } = JSON.parse(answer) as { records: [{ id: string }] };
    return { id, key, path, record: records[0].id };
  };
  return Promise.all(Array.from({ length: BASES }, connect));
}

/**
 * p50 and p99 of the proxy's added latency. Those of the minimal forwarder are the machine's own share, and are printed.
 */
async function addedLatency(
  bench: Bench,
  kind: "read" | "write",
  requests: number,
): Promise<[Figure, number][]> {
  const ways = waysOf(bench);
  const times: Record<Way, number[]> = { direct: [], bare: [], proxied: [], against: [] };
  for (let count = 0; count < requests; count++) {
    const index = count % MEASURED_BASES;
    await pacer.turn(bench.bases[index]!);
    for (const way of ways) {
      const from = performance.now();
      await send(bench, way, kind, index, count);
      times[way].push(performance.now() - from);
    }
  }
  return ([50, 99] as const).map((rank): [Figure, number] => {
    const of = (way: Way) => quantile(times[way], rank / 100);
    const direct = of("direct");
    const added = of("proxied") - direct;
    const figure: Figure = `${kind} p${rank}, ms`;
    const shown = [direct, of("bare") - direct, added].map((ms) => ms.toFixed(2));
    const other = bench.against ? `, ${(of("against") - direct).toFixed(2)} by the other tree` : "";
    console.log(
      `${figure}: ${shown[0]} direct, ${shown[1]} added by a bare forwarder, ${shown[2]} added${other}`,
    );
    return [figure, added];
  });
}

const isWarm: Record<"read" | "write", boolean> = { read: false, write: false };

async function warmUp(bench: Bench, kind: "read" | "write"): Promise<void> {
  if (isWarm[kind]) return;
  // The forwarder has no rate limit.
  const forward = async (index: number) => {
    for (let count = 0; count < WARM_UP; count++) await send(bench, "bare", kind, index, count);
  };
  await Promise.all(bench.bases.keys().map(forward));
  for (const way of waysOf(bench).slice(2)) await sendToAll(bench, [way], kind, WARM_UP);
  isWarm[kind] = true;
}

/** The CPU of a request through the proxy beyond that of one through the minimal forwarder, with all bases busy, µs. */
async function addedCpu(bench: Bench, kind: "read" | "write"): Promise<number> {
  const { pids } = bench;
  const idle = await cpuWhile(pids, () => Bun.sleep(IDLE_MS));
  const seconds = { bare: 0, proxied: 0 };
  for (let round = 0; round < CPU_ROUNDS; round++) {
    for (const way of ["bare", "proxied"] as const) {
      const from = performance.now();
      const used = await cpuWhile(pids, () => sendToAll(bench, [way], kind, CPU_REQUESTS));
      seconds[way] += used[way] - (idle[way] * (performance.now() - from)) / IDLE_MS;
    }
  }
  const each = (way: keyof typeof pids) => (1e6 * seconds[way]) / (CPU_ROUNDS * CPU_REQUESTS * BASES);
  console.log(
    `${kind} CPU, µs: ${each("bare").toFixed(0)} of a bare forwarder, ${each("proxied").toFixed(0)}`,
  );
  return each("proxied") - each("bare");
}

/** CPU seconds of each process while `work` runs. */
async function cpuWhile<Name extends string>(
  pids: Record<Name, number>,
  work: () => Promise<void>,
): Promise<Record<Name, number>> {
  const read = () => mapValues(pids, cpuSeconds);
  const before = read();
  await work();
  const after = read();
  return mapValues(after, (seconds, name) => seconds - before[name]);
}

function mapValues<Name extends string, From, To>(
  from: Record<Name, From>,
  map: (value: From, name: Name) => To,
): Record<Name, To> {
  const names = Object.keys(from) as Name[];
  return Object.fromEntries(names.map((name) => [name, map(from[name], name)])) as Record<Name, To>;
}

/**
 * The least share over all numbers of connections, with reads of a base that is not connected, so without a rate limit.
 */
async function throughput({ source, proxied, bare }: Bench): Promise<number> {
  const id = await source.generate({ records: 10, tables: 1, seed: 99 });
  const path = `/v0/${id}/Projects?pageSize=5`;
  let least = Number.POSITIVE_INFINITY;
  const rates = async (connections: number) => {
    const rate: number[] = [];
    for (const at of [bare, proxied]) rate.push(await requestsPerSecond(at + path, source.key, connections));
    return rate;
  };
  // While the code is compiled, the rate of the proxy is a tenth lower.
  for (const connections of CONNECTIONS) await rates(connections);
  for (const connections of CONNECTIONS) {
    const rate = await rates(connections);
    least = Math.min(least, rate[1]! / rate[0]!);
    console.log(`${connections} connections: bare ${rate[0]!.toFixed(0)}/s, proxy ${rate[1]!.toFixed(0)}/s`);
  }
  return least;
}

async function requestsPerSecond(url: string, key: string, connections: number): Promise<number> {
  let done = 0;
  const from = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (performance.now() - from < THROUGHPUT_MS) {
        await call("GET", url, key);
        done++;
      }
    }),
  );
  return done / ((performance.now() - from) / 1000);
}

async function peakMemory(proxied: string, pid: number): Promise<number> {
  // Resets the peak of earlier measurements.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  console.log(`memory before the stream: ${memoryPeak(pid).toFixed(0)} MB`);
  const answer = await fetch(`${proxied}/v0/long/${STREAM_MEGABYTES}`);
  let bytes = 0;
  for await (const chunk of answer.body!) bytes += chunk.length;
  if (bytes !== STREAM_MEGABYTES << 20) throw new Error(`${bytes} bytes came through`);
  return memoryPeak(pid);
}

/** The process's highest resident memory since the last reset, MB. */
function memoryPeak(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1000;
}

function report(figures: [Figure, number][]): boolean {
  let isWithin = true;
  const rows = figures.map(([name, value]) => {
    // A share must be high, all other figures low.
    const isShare = name.includes("share");
    const share = isShare ? ratio(LIMITS[name], value) : ratio(value, LIMITS[name]);
    const ofLimit = isShare ? LIMITS[name] / value : value / LIMITS[name];
    isWithin &&= share.isWithin;
    return [
      name,
      value.toFixed(2),
      LIMITS[name],
      `${ofLimit.toFixed(3)}${share.isWithin ? "" : " OVER THE LIMIT"}`,
    ];
  });
  console.log();
  table(["figure", "measured", "limit", "of the limit"], rows);
  return isWithin;
}

/** Starts a program that prints its port, alone or in a line of the log. */
export async function startPrinting(
  releases: AsyncDisposableStack,
  command: string[],
  env: Record<string, string> = {},
) {
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...IMAGE_ENVIRONMENT, ...process.env, ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  releases.defer(async () => {
    child.kill();
    await child.exited;
  });
  let text = "";
  const reader = child.stdout.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += new TextDecoder().decode(part.value);
    const port = Number(/"port":(\d+)|^(\d+)\n/.exec(text)?.slice(1).find(Boolean));
    if (port) return { port, pid: child.pid };
  }
  throw new Error(`${command.join(" ")} did not start: ${text}`);
}

if (import.meta.main) process.exit((await run()) ? 0 : 1);
