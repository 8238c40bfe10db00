/**
 * Measures the cost of the rate limiter and how well it keeps its limits. Each figure is printed as a ratio to its
 * limit, where 1 or less passes.
 *
 * Times are taken in the processes that would send the requests, at the moment that they may. A run takes about 75 s,
 * most of it one minute of a base under three times its rate limit from three processes.
 *
 * Run: `bun run bench quota` (DATABASE_URL, or an embedded server).
 */
import postgres from "postgres";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";
import { mostWithin } from "../support/permit-simulation";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { quantile } from "../support/quantile";
import type { QuotaGrant, QuotaJob } from "../support/quota-process";
import { startTestServer } from "../support/server";

const COST_SECONDS = 3;
/** Time for the processes of a measurement to start, ms. */
const START_MS = 700;
const PROCESS = `${import.meta.dir}/../support/quota-process.ts`;

/** The control plane of this bench. */
let url = "";
let isWithin = true;

/** @returns whether every figure is within its limit */
export async function run(): Promise<boolean> {
  const server = await startTestServer();
  const database = `quota_bench_${process.pid}`;
  const admin = postgres(server.url, { max: 1, onnotice: () => {} });
  await admin.unsafe(`create database ${database}`);
  url = Object.assign(new URL(server.url), { pathname: `/${database}` }).href;
  try {
    await migrateControl(url, createLogger("error", "bench"));
    await cost();
    await Promise.all([alone(), overloaded()]);
  } finally {
    await admin.unsafe(`drop database if exists ${database} with (force)`);
    await admin.end();
    await server.stop();
  }
  return isWithin;
}

function report(line: string, value: string, ratio?: number): void {
  isWithin &&= ratio === undefined || ratio <= 1;
  console.log(`${line.padEnd(72)} ${value.padStart(16)} ${ratio === undefined ? "" : ratio.toFixed(3)}`);
}

/** µs per call of one connection on one key, calls per second of 8 connections on 100 keys, and the server's CPU. */
async function cost(): Promise<void> {
  const db = postgres(url, { max: 8, onnotice: () => {} });
  const [row] = await db<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const server = parentOf(row!.pid);
  await db`select quota_heartbeat('bench', 'bench', false, null, 0, false, 5)`;
  await db`update quota_holders set heard_at = heard_at + 3600000`;
  async function callsPerSecond(workers: number, keys: number): Promise<number> {
    const endAt = performance.now() + COST_SECONDS * 1000;
    let calls = 0;
    async function work(): Promise<void> {
      while (performance.now() < endAt) {
        const key = `cost:${Math.floor(Math.random() * keys)}`;
        await db`select session, message from quota_trade(${key}, 'bench', 1, 'client', 1, 5, '{1}', '{1000}', 5, 2)`;
        calls++;
      }
    }
    await Promise.all(Array.from({ length: workers }, work));
    return calls / COST_SECONDS;
  }
  async function emptyPerSecond(): Promise<number> {
    const endAt = performance.now() + COST_SECONDS * 1000;
    let calls = 0;
    for (; performance.now() < endAt; calls++) await db`select 1`;
    return calls / COST_SECONDS;
  }
  const empty = await emptyPerSecond();
  const from = cpuSeconds(server);
  const one = await callsPerSecond(1, 1);
  report("a trade of one permit, µs", `${(1e6 / one).toFixed(0)}`);
  report(
    "  of which the server's CPU, µs",
    ((1e6 * (cpuSeconds(server) - from)) / (one * COST_SECONDS)).toFixed(0),
  );
  report("  of which the way to the server and back (`select 1`), µs", `${(1e6 / empty).toFixed(0)}`);
  report("trades per second, 8 connections, 100 keys", `${(await callsPerSecond(8, 100)).toFixed(0)}`);
  await db.end();
}

/** Runs each job in a process of its own, on a key of their own, and returns all their grants in order. */
async function play(seconds: number, jobs: Partial<QuotaJob>[]): Promise<QuotaGrant[]> {
  const from = Date.now() + START_MS;
  const common = {
    url,
    key: crypto.randomUUID(),
    from,
    until: from + seconds * 1000,
    tables: 0,
    share: 5,
    clients: 0,
    clientPeriodMs: 1000,
    clientJitter: 0,
  };
  const outputs = jobs.map((job) => {
    const child = Bun.spawn(["bun", PROCESS, JSON.stringify({ ...common, ...job })], { stderr: "inherit" });
    return new Response(child.stdout).json() as Promise<QuotaGrant[]>;
  });
  return (await Promise.all(outputs)).flat().sort((a, b) => a.at - b.at);
}

function mostPerSecond(grants: QuotaGrant[]): number {
  return mostWithin(
    grants.map(({ at }) => at),
    1000,
  );
}

/** Syncs alone, each on a base of its own; then a client next to one. */
async function alone(): Promise<void> {
  const syncs = [5, 3].flatMap((share) => [1, 5].map((tables) => ({ share, tables })));
  await Promise.all(
    syncs.map(async ({ share, tables }) => {
      const grants = await play(100 / share + 2, [{ tables, share }]);
      const name = `(a) 100 requests, share ${share}, ${tables} table${tables > 1 ? "s" : ""}, against 1.03 x ${(100 / share).toFixed(1)} s`;
      if (grants.length < 100) return report(name, "not done", Infinity);
      const tookMs = grants[99]!.at + 150 - grants[0]!.askedAt;
      report(name, `${(tookMs / 1000).toFixed(2)} s`, tookMs / (1030 * (100 / share)));
      report(
        "    most requests in a second, against 5",
        String(mostPerSecond(grants)),
        mostPerSecond(grants) / 5,
      );
    }),
  );
  const grants = await play(25, [{ tables: 5 }, { clients: 1 }]);
  const waits = grants.filter(({ kind }) => kind === "client").map(({ askedAt, at }) => at - askedAt);
  const p95 = quantile(waits, 0.95);
  report(
    "(b) a client a second beside a turbo sync: p95 wait, against 250 ms",
    `${p95.toFixed(0)} ms`,
    p95 / 250,
  );
  report("    median", `${quantile(waits, 0.5).toFixed(0)} ms`);
}

/** One base, a sync, and four clients in two processes that request three times the rate limit, for a minute. */
async function overloaded(): Promise<void> {
  const clients = { clients: 2, clientPeriodMs: 4000 / 15, clientJitter: 1 };
  const grants = await play(60, [{ tables: 5 }, clients, clients]);
  const used = grants.length / 300;
  report(
    "(c) a minute of three times the quota: unused, 0.97 of 5/s against it",
    used.toFixed(4),
    0.97 / used,
  );
  report(
    "    most requests in a second, against 5",
    String(mostPerSecond(grants)),
    mostPerSecond(grants) / 5,
  );
  const sync = grants.filter(({ kind }) => kind === "sync").map(({ at }) => at);
  const longestGap = Math.max(...sync.map((at, index) => at - (sync[index - 1] ?? grants[0]!.at)));
  report(
    "    longest time between two of sync's, against 10 s",
    `${longestGap.toFixed(0)} ms`,
    longestGap / 10_000,
  );
  for (const jitterMs of [25, 50]) {
    const arrivals = grants.map(({ at }) => at + Math.random() * jitterMs).sort((a, b) => a - b);
    const sixths = arrivals.filter((at, index) => at - arrivals[index - 5]! < 1000).length;
    report(
      `    with ${jitterMs} ms of network jitter: requests that are a sixth`,
      `${((100 * sixths) / arrivals.length).toFixed(2)} %`,
    );
  }
}
