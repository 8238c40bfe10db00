/**
 * Measures how long a first sync and a sweep take, relative to the time that the rate limit alone requires, and what an
 * unchanged sweep writes.
 *
 * One worker process syncs all bases at the same time, over a network (`network.ts`). Run: `bun run bench sync-time`
 */
import postgres from "postgres";
import { listRuns, updateSettings } from "../../core/control/bases";
import { type Fleet, startFleet } from "../support/fleet";
import { until } from "../support/poll";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { startWorkerProcess } from "../support/worker-process";
import { LEAST_USED, networkOption, WORK_MS } from "./network";
import { ratio, table } from "./print";

type SandboxFleet = Fleet<SandboxProcess>;

const RECORDS = [1000, 5000, 10_000];
const TABLES = [1, 5];
/** By requests a second: at 3 there is room for the network's variation; at 5 it costs a share. */
const limitOf = (rate: number, network = "loopback") => 1.03 / (rate === 5 ? (LEAST_USED[network] ?? 1) : 1);
/** Sweeps are averaged over at least this time: the latency of one small sweep's last page means little. */
const LEAST_SWEPT_MS = 15_000;
const WAL_LIMIT_BYTES = 50_000;
const WAL_SWEEPS = 5;
const TIMEOUT_MS = 180_000;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const control = await startTestServer();
  releases.defer(() => control.stop());
  const replicas = await startTestServer();
  releases.defer(() => replicas.stop());
  const { network } = networkOption();
  const source = releases.use(await startSandboxProcess({ network }));
  // The source's other limit, of 50 a second per user, is not measured: each base has its own user here.
  await source.settings({
    ...WORK_MS,
    requestsPerSecondPerUser: 1000,
  });
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: control.url, workers: 0, env: { REPLICA_URL: replicas.url } }),
  );
  releases.use(await startWorkerProcess(fleet, source.clientEnv));
  const wal = await unchangedSweep(fleet, replicas.url);
  const times = await syncTimes(fleet, network);
  const log = await source.logSummary();
  const most = Math.max(...Object.values(log.bases).map((base) => base.maxPerSecond));
  console.log(`\n429 answers: ${log.rateLimited}; most requests of a base in any second: ${most} (limit 5)`);
  return times && wal && log.rateLimited === 0 && most <= 5;
}

async function syncTimes(fleet: SandboxFleet, network: string | undefined): Promise<boolean> {
  const cases = RECORDS.flatMap((records) =>
    TABLES.flatMap((tables) => [3, 5].map((rate) => ({ records, tables, rate }))),
  );
  // All are created before any is synced: generating one delays the sandbox's records of arrivals.
  const sources: string[] = [];
  for (const { records, tables, rate } of cases) {
    sources.push(await fleet.sandbox.generate({ records, tables, seed: records + tables * 10 + rate }));
  }
  const connected = await Promise.all(
    cases.map(async (one, index) => ({
      ...one,
      base: await fleet.connect(sources[index]!, { turbo: one.rate === 5 }),
    })),
  );
  const rows = await Promise.all(
    connected.map(async ({ base, ...one }) => {
      const runs = await until(
        async () => {
          const all = (await listRuns(fleet.ctx.db, base.id, 1000)).filter((run) => run.completed_at);
          const sweep = all.filter((run) => run.kind === "sweep").at(-1);
          const sweptMs = sweep ? sweep.duration_ms! * sweep.syncs : 0;
          return sweep && sweptMs >= LEAST_SWEPT_MS && { first: all.at(-1)!, sweep };
        },
        {
          timeoutMs: TIMEOUT_MS,
          intervalMs: 200,
          what: `a first sync and a sweep of ${one.records} records`,
        },
      );
      return { ...one, runs };
    }),
  );
  let isWithin = true;
  const cells = rows.flatMap(({ records, tables, rate, runs }) =>
    [runs.first, runs.sweep].map((run) => {
      const requests = run.requests / run.syncs;
      const quotaMs = (requests / rate) * 1000;
      const limit = limitOf(rate, network);
      const measured = ratio(run.duration_ms! / quotaMs, limit);
      isWithin &&= measured.isWithin;
      return [
        run.kind,
        records,
        tables,
        `${rate}/s`,
        requests,
        `${Math.round(run.duration_ms!)} ms`,
        limit.toFixed(2),
        measured.text,
      ];
    }),
  );
  table(["sync", "records", "tables", "rate", "requests", "time", "limit", "of requests / rate"], cells);
  return isWithin;
}

/** WAL and rows written by sweeps of one base without changes. Nothing else uses that server meanwhile. */
async function unchangedSweep(fleet: SandboxFleet, replicaServer: string): Promise<boolean> {
  const sourceId = await fleet.sandbox.generate({ records: 1000, tables: 5, seed: 99 });
  const base = await fleet.connect(sourceId, { turbo: true });
  await fleet.synced(base.id, TIMEOUT_MS);
  await fleet.synced(base.id, TIMEOUT_MS);
  await fleet.synced(base.id, TIMEOUT_MS);
  const owner = await fleet.owner(base);
  const written = async () => {
    await owner`select pg_stat_force_next_flush()`;
    const [row] = await owner<{ tuples: string }[]>`
      select sum(n_tup_ins + n_tup_upd + n_tup_del) as tuples from pg_stat_user_tables where relname <> '_sync_meta'`;
    return Number(row!.tuples);
  };
  await using server = disposable(postgres(replicaServer, { max: 1 }));
  // Measures the sweep's writes, without the server's cleanup after the first sync.
  await server`alter system set autovacuum = off`;
  await server`select pg_reload_conf()`;
  const walBytes = async () => Number((await server`select pg_current_wal_lsn() - '0/0' as bytes`)[0]!.bytes);
  const completed = async () =>
    (await listRuns(fleet.ctx.db, base.id, 1000))
      .filter((run) => run.completed_at)
      .reduce((syncs, run) => syncs + run.syncs, 0);

  const from = { wal: await walBytes(), tuples: await written(), sweeps: await completed() };
  await until(async () => (await completed()) >= from.sweeps + WAL_SWEEPS, {
    timeoutMs: TIMEOUT_MS,
    what: `${WAL_SWEEPS} sweeps`,
  });
  const sweeps = (await completed()) - from.sweeps;
  const perSweep = ((await walBytes()) - from.wal) / sweeps;
  const tuples = (await written()) - from.tuples;
  await server`alter system reset autovacuum`;
  await server`select pg_reload_conf()`;
  await updateSettings(fleet.ctx, base, { paused: true });
  // Between two schema checks without a request in between, which are further apart than two requests of a sweep.
  const asked: number[] = [];
  const isLetGo = async () => {
    asked.push((await fleet.sandbox.logSummary()).requests);
    return asked.length > 1 && asked.at(-1) === asked.at(-2);
  };
  await until(isLetGo, { what: "the base is let go", timeoutMs: TIMEOUT_MS, intervalMs: 2000 });
  const measured = ratio(perSweep / WAL_LIMIT_BYTES, 1);
  console.log(
    `\nunchanged sweep: ${Math.round(perSweep)} B of WAL, ${measured.text} of ${WAL_LIMIT_BYTES} B; ` +
      `rows written besides _sync_meta's in ${sweeps} sweeps: ${tuples}`,
  );
  return measured.isWithin && tuples === 0;
}

function disposable(sql: postgres.Sql): postgres.Sql & AsyncDisposable {
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}
