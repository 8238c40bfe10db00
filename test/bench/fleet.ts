/**
 * Measures the load of a fleet on its control plane, and how fast its workers balance bases: a simulation without
 * source calls, with the real limiter, queue and scheduler on a real Postgres.
 *
 * Costs are per base and second, in addition to those of workers without bases; a control plane can be sized by them.
 * CPU is that of the server alone, so it is valid on a busy machine. Run: `bun run bench fleet`, with FLEET_BASES
 * (10000), FLEET_WORKERS (4), FLEET_BUSY (150) and FLEET_SECONDS (30, of each measurement).
 */
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { readConfig } from "../../core/config";
import { ensureDefaultCluster } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { allInHand, allSynced, insertBases, keepOnly, SHARED_OUT_TIMEOUT_MS } from "../support/fleet-bases";
import { until } from "../support/poll";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { type Program, startProgram } from "../support/program";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const BASES = Number(process.env.FLEET_BASES ?? 10_000);
const WORKERS = Number(process.env.FLEET_WORKERS ?? 4);
const BUSY = Number(process.env.FLEET_BUSY ?? 150);
const SECONDS = Number(process.env.FLEET_SECONDS ?? 30);
/** The share of a server's cores that a control plane may use permanently. */
const USABLE = 0.7;
const CORES = 8;
/** Limits: balanced within a minute, and all bases leased half a minute after a kill. */
const EVEN_LIMIT_MS = 60_000;
const KILLED_LIMIT_MS = 30_000;
/** Longest start of a worker on a busy machine. */
const START_MS = 120_000;

interface Cost {
  transactions: number;
  walBytes: number;
  serverCpu: number;
  workerCpu: number;
}

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const env = {
    DATABASE_URL: server.url,
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: join(tmpdir(), "basetide-unused"),
    LOG_LEVEL: "error",
    WORKER_PORT: "0",
    WORKER_CONCURRENCY: String(BASES),
  };
  const ctx = createContext(readConfig(env), "bench");
  releases.defer(() => closeContext(ctx));
  const { db } = ctx;
  await migrateControl(server.url, ctx.log);
  await ensureDefaultCluster(ctx);
  const queue = await openQueue(ctx, server.url, { isWorker: false });
  releases.defer(() => queue.close());
  const pid = await serverPid(server.url);

  const workers: Program[] = [];
  const addWorker = async () => {
    const worker = releases.use(startProgram("test/support/fleet-process.ts", [], env));
    workers.push(worker);
    await worker.says("started", START_MS);
  };
  const cost = async (): Promise<Cost> => {
    const now = async () => ({
      ...(await counters(db)),
      serverCpu: cpuSeconds(pid),
      workerCpu: cpuOf(workers),
    });
    const [from, at] = [await now(), performance.now()];
    await Bun.sleep(SECONDS * 1000);
    const [to, seconds] = [await now(), (performance.now() - at) / 1000];
    const each = (name: keyof Cost) => (to[name] - from[name]) / seconds;
    return {
      transactions: each("transactions"),
      walBytes: each("walBytes"),
      serverCpu: each("serverCpu"),
      workerCpu: each("workerCpu"),
    };
  };
  const held = async () => {
    const rows = await db<{ bases: number }[]>`
      select bases from processes where role = 'worker' and seen_at > now() - interval '9 s' order by bases`;
    return rows.map((row) => row.bases);
  };

  for (let index = 1; index < WORKERS; index++) await addWorker();
  const idle = await cost();
  await insertBases(ctx, BASES);
  const taken = await timed(() => allInHand(db, BASES));
  const quiet = await cost();

  await addWorker();
  const isEven = async () => {
    const all = await held();
    return all.length === WORKERS && all.at(-1)! - all[0]! <= 1;
  };
  const evenMs = await timed(() =>
    until(isEven, { what: "even shares", timeoutMs: SHARED_OUT_TIMEOUT_MS, intervalMs: 200 }),
  );
  const victim = workers.shift()!;
  const [{ bases: lost } = { bases: 0 }] = await db<{ bases: number }[]>`
    select bases from processes where role = 'worker' and pid = ${victim.pid}`;
  victim.kill("SIGKILL");
  const killedMs = await timed(() => {
    const isTaken = async () => {
      const [row] = await db<{ bases: number }[]>`
        select sum(bases)::int as bases from processes where role = 'worker' and pid <> ${victim.pid}`;
      return row!.bases >= BASES;
    };
    return until(isTaken, {
      what: "the lost bases in hand",
      timeoutMs: SHARED_OUT_TIMEOUT_MS,
      intervalMs: 200,
    });
  });

  const costs = [{ name: `quiet (${BASES})`, bases: BASES, cost: quiet }];
  for (const kind of ["small", "busy"]) {
    await keepOnly(db, kind, BUSY);
    await allInHand(db, BUSY);
    await allSynced(db, BUSY);
    costs.push({ name: `${kind} (${BUSY})`, bases: BUSY, cost: await cost() });
  }
  table(
    [
      "per base and second",
      "transactions",
      "WAL",
      "CPU of the server",
      "of workers",
      `a control plane of ${CORES} cores ends at`,
    ],
    costs.map(({ name, bases, cost }) => {
      const each = (of: keyof Cost) => Math.max(0, cost[of] - idle[of]) / bases;
      return [
        name,
        each("transactions").toFixed(3),
        `${each("walBytes").toFixed(0)} B`,
        `${(each("serverCpu") * 1e6).toFixed(0)} µs`,
        `${(each("workerCpu") * 1e6).toFixed(0)} µs`,
        `${Math.round((CORES * USABLE) / each("serverCpu"))} bases`,
      ];
    }),
  );
  console.log(
    `\na worker without bases: ${(idle.transactions / (WORKERS - 1)).toFixed(1)} transactions a second, ` +
      `${((1000 * idle.serverCpu) / (WORKERS - 1)).toFixed(1)} ms of the server's CPU a second`,
  );
  const [even, killed] = [ratio(evenMs / EVEN_LIMIT_MS, 1), ratio(killedMs / KILLED_LIMIT_MS, 1)];
  table(
    [`${BASES} bases on ${WORKERS} workers`, "", "ratio"],
    [
      [`taken by ${WORKERS - 1}, from none`, `${(taken / 1000).toFixed(1)} s`, ""],
      ["even within one after another joins", `${(evenMs / 1000).toFixed(1)} s`, even.text],
      [`a killed one's ${lost} in hand elsewhere`, `${(killedMs / 1000).toFixed(1)} s`, killed.text],
    ],
  );
  return even.isWithin && killed.isWithin;
}

async function counters(db: postgres.Sql): Promise<{ transactions: number; walBytes: number }> {
  const [row] = await db<{ transactions: number; walBytes: number }[]>`
    select (select sum(xact_commit) from pg_stat_database)::float8 as transactions,
      (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes"`;
  return row!;
}

function cpuOf(workers: Program[]): number {
  return workers.reduce((sum, worker) => sum + cpuSeconds(worker.pid), 0);
}

async function serverPid(url: string): Promise<number> {
  const sql = postgres(url, { max: 1 });
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const parent = parentOf(row!.pid);
  await sql.end();
  return parent;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
