/**
 * Measures the control plane's CPU per request of a fleet at its full rate, and per idle base, by statement. Workers, rate
 * limiter and queue are real; there are no requests to a source and no replicas (test/support/fleet-process.ts).
 *
 * CPU is that of the server alone, so it is valid on a busy machine. Run: `bun run bench control`, with CONTROL_BUSY (60),
 * CONTROL_IDLE (1000, at least CONTROL_BUSY), CONTROL_SECONDS (20, of each measurement).
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { readConfig } from "../../core/config";
import { ensureDefaultCluster } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { createLogger } from "../../core/log";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { allInHand, allSynced, insertBases, keepOnly } from "../support/fleet-bases";
import { cpuSeconds, parentOf, residentBytes } from "../support/process-usage";
import { startProgram } from "../support/program";
import { scratchFolder } from "../support/scratch";
import { startTestServer, unsafeButFast } from "../support/server";
import { ratio, table } from "./print";
import { countingStatements, StatementCounts } from "./statements";

const BUSY = Number(process.env.CONTROL_BUSY ?? 60);
const IDLE = Number(process.env.CONTROL_IDLE ?? 1000);
const SECONDS = Number(process.env.CONTROL_SECONDS ?? 20);
const LIMIT_US = 120;

interface Cost {
  seconds: number;
  requests: number;
  transactions: number;
  walBytes: number;
  serverCpu: number;
  workerCpu: number;
}

export async function run(): Promise<boolean> {
  if (IDLE < BUSY)
    throw new Error(
      `CONTROL_IDLE (${IDLE}) is less than CONTROL_BUSY (${BUSY}), but the busy bases are some of the idle ones: raise CONTROL_IDLE`,
    );
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("control");
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("fatal", "bench"),
    settings: { ...unsafeButFast, max_wal_size: "512MB", ...countingStatements },
  });
  releases.defer(() => server.stop());
  // Customers' databases are elsewhere: their server is watched for readers that use up transaction ids.
  const replicas = await startTestServer();
  releases.defer(() => replicas.stop());
  const statistics = postgres(server.url, { max: 1, onnotice: () => {} });
  releases.defer(() => statistics.end());
  const statements = await StatementCounts.on(statistics);
  const env = {
    DATABASE_URL: server.url,
    REPLICA_URL: replicas.url,
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: join(tmpdir(), "basetide-unused"),
    LOG_LEVEL: "error",
    WORKER_PORT: "0",
    WORKER_CONCURRENCY: String(Math.max(BUSY, IDLE)),
  };
  const ctx = createContext(readConfig(env), "bench");
  releases.defer(() => closeContext(ctx));
  const { db } = ctx;
  await migrateControl(server.url, ctx.log);
  await ensureDefaultCluster(ctx);
  const queue = await openQueue(ctx, server.url, { isWorker: false });
  releases.defer(() => queue.close());
  const [row] = await statistics<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const serverPid = parentOf(row!.pid);
  const worker = releases.use(startProgram("test/support/fleet-process.ts", [], env));
  await worker.says("started");

  async function counters(): Promise<Omit<Cost, "seconds">> {
    const [row] = await db<{ transactions: number; walBytes: number; requests: number }[]>`
      select (select sum(xact_commit) from pg_stat_database)::float8 as transactions,
        (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes",
        ((select coalesce(sum(sync), 0) from quota_calls))::float8 as requests`;
    return { ...row!, serverCpu: cpuSeconds(serverPid), workerCpu: cpuSeconds(worker.pid) };
  }

  async function cost(what: string): Promise<Cost> {
    await statements.reset();
    const [from, at] = [await counters(), performance.now()];
    await Bun.sleep(SECONDS * 1000);
    const [to, seconds] = [await counters(), (performance.now() - at) / 1000];
    const each = (name: keyof typeof to) => to[name] - from[name];
    await statements.print(what);
    return {
      seconds,
      requests: each("requests"),
      transactions: each("transactions"),
      walBytes: each("walBytes"),
      serverCpu: each("serverCpu"),
      workerCpu: each("workerCpu"),
    };
  }

  const empty = await cost("a worker without bases");
  await insertBases(ctx, IDLE);
  await allInHand(db, IDLE);
  await Bun.sleep(5000);
  const idle = await cost(`${IDLE} idle bases`);
  const idleBytes = residentBytes(worker.pid);
  await keepOnly(db, "busy", BUSY);
  await allInHand(db, BUSY);
  await allSynced(db, BUSY);
  const busy = await cost(`${BUSY} bases at full rate`);

  const each = (cost: Cost, of: keyof Cost) => (cost[of] / cost.seconds).toFixed(2);
  const usPerRequest = (1e6 * busy.serverCpu) / busy.requests;
  const limit = ratio(usPerRequest / LIMIT_US, 1);
  console.log();
  table(
    ["per second", "requests", "transactions", "WAL, B", "CPU of the server, ms", "of the worker, ms"],
    [
      ["no bases", empty] as const,
      [`${IDLE} idle`, idle] as const,
      [`${BUSY} at full rate`, busy] as const,
    ].map(([name, cost]) => [
      name,
      each(cost, "requests"),
      each(cost, "transactions"),
      each(cost, "walBytes"),
      ((1000 * cost.serverCpu) / cost.seconds).toFixed(2),
      ((1000 * cost.workerCpu) / cost.seconds).toFixed(2),
    ]),
  );
  console.log(
    `CPU of the control plane: ${usPerRequest.toFixed(0)} µs a request, ${limit.text} of ${LIMIT_US}; ` +
      `of the worker ${((1e6 * busy.workerCpu) / busy.requests).toFixed(0)} µs; ` +
      `the worker's memory with idle bases ${(idleBytes / 2 ** 20).toFixed(0)} MB`,
  );
  return limit.isWithin;
}
