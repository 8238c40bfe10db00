/**
 * Measures a base that nobody edits, in the ten minutes after its first sync, while no notification has ever arrived: its
 * calls, by the sandbox's own log, and the WAL of the server that has the control plane and the replica. Then it is
 * edited for the first time. Two installations are measured at the same time, each with a server and a process of its
 * own (worker, proxy and console): one whose console the sandbox notifies, and one that must poll.
 *
 * Nothing is simulated or shortened: the ten minutes pass. WAL an hour is twelve times that of the last five of them: in
 * the first ones, the new server analyzes its catalogs for the first time, which has nothing to do with the base.
 *
 * Run: `REST_FRESH=1 bun run bench rest`. With REST_WAL, it prints what the WAL of these five minutes consists of.
 */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { startProgram } from "../support/program";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { scratchFolder } from "../support/scratch";
import { ratio, table } from "./print";
import { createPattern } from "./rest-bases";
import { WORKER_ENVIRONMENT } from "./runtime-environment";

const MINUTES = 10;
const WAL_MINUTES = 5;
const RECORDS = 100;
const TIMEOUT_MS = 60_000;
const MB = 1e6;
/** Lines of what the WAL consists of. */
const SHOWN = 20;
const FIRST_EDIT = "First edit";

const INSTALLATIONS = [
  { name: "notified", livePings: "auto", limits: { calls: 5, walMb: 1, lagMs: 1500 } },
  // A poll every 6 s, a comparison a minute, and the polls of the first minutes, which follow each other faster.
  { name: "polled", livePings: "off", limits: { calls: 210, walMb: 5, lagMs: 7500 } },
];

interface Measured {
  calls: number;
  walMb: number;
  lagMs: number;
}

/** Returns whether all figures are within their limits. */
export async function runFresh(): Promise<boolean> {
  await using source = await startSandboxProcess();
  const measured = await Promise.all(INSTALLATIONS.map(({ livePings }) => measure(source, livePings)));
  let isWithin = true;
  const rows = INSTALLATIONS.flatMap(({ name, limits }, index) => {
    const { calls, walMb, lagMs } = measured[index]!;
    const figures = [
      [`calls in the ${MINUTES} minutes after the first sync`, calls, limits.calls],
      ["WAL, MB an hour", walMb, limits.walMb],
      ["lag of the first edit, ms", lagMs, limits.lagMs],
    ] as const;
    return figures.map(([what, value, limit]) => {
      const { text, isWithin: isFine } = ratio(value / limit, 1);
      isWithin &&= isFine;
      return [name, what, Number(value.toFixed(2)), limit, text];
    });
  });
  table(["installation", "of a base that nobody has edited", "measured", "limit", "of it"], rows);
  return isWithin;
}

async function measure(source: SandboxProcess, livePings: string): Promise<Measured> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder(`rest-fresh-${livePings}`);
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const log = createLogger("fatal", "bench");
  const server = await startEmbeddedPostgres({ dataDir: join(folder, "postgres"), port: 0, log });
  releases.defer(() => server.stop());
  const admin = postgres(server.url, { max: 1, onnotice: () => {} });
  releases.defer(() => admin.end({ timeout: 1 }));
  const [consolePort, proxyPort, workerPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const env = {
    REPLICA_URL: server.url,
    SECRET_KEY: randomBytes(32).toString("base64"),
    CONSOLE_PORT: String(consolePort),
    CONSOLE_URL: `http://127.0.0.1:${consolePort}`,
    LIVE_PINGS: livePings,
  };
  const fleet = releases.use(
    await startFleet({ source, databaseUrl: server.url, env, workers: 0, leavesBases: true }),
  );
  const service = releases.use(
    startProgram("apps/main.ts", ["all"], {
      ...env,
      ...source.clientEnv,
      ...WORKER_ENVIRONMENT,
      DATABASE_URL: server.url,
      DATA_DIR: folder,
      PROXY_PORT: String(proxyPort),
      WORKER_PORT: String(workerPort),
      LOG_LEVEL: "warn",
    }),
  );
  await until(() => isReady(consolePort), { what: "the service is ready", timeoutMs: TIMEOUT_MS });
  const pattern = await createPattern(source, RECORDS);
  const base = await fleet.connect(pattern.baseId, { live: true, turbo: true });
  const synced = async () => {
    const [row] = await fleet.ctx
      .db`select from bases where id = ${base.id} and sync_completed_at is not null`;
    return row !== undefined;
  };
  await until(synced, { what: "the first sync is complete", timeoutMs: TIMEOUT_MS, intervalMs: 50 });
  const counters = async () => {
    const { bases } = await source.logSummary();
    const [row] = await admin<{ bytes: string }[]>`select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`;
    return { calls: bases[pattern.baseId]!.requests, bytes: Number(row!.bytes) };
  };
  const before = await counters();
  await Bun.sleep((MINUTES - WAL_MINUTES) * 60_000);
  const later = await counters();
  await Bun.sleep(WAL_MINUTES * 60_000);
  const after = await counters();

  if (process.env.REST_WAL) await printWal(admin, livePings, later.bytes, after.bytes);

  const owner = await fleet.owner(base);
  const from = performance.now();
  await source.call("POST", `bases/${pattern.baseId}/tables/${pattern.tableId}/records`, {
    records: [{ fields: { "Field 0": FIRST_EDIT } }],
  });
  const isInSql = async () => (await owner`select from table_0 where field_0 = ${FIRST_EDIT}`).length > 0;
  await until(isInSql, { what: "the first edit is in SQL", timeoutMs: TIMEOUT_MS, intervalMs: 10 });
  const lagMs = performance.now() - from;
  service.kill("SIGTERM");
  await service.exited;
  const walMb = ((after.bytes - later.bytes) / MB) * (60 / WAL_MINUTES);
  return { calls: after.calls - before.calls, walMb, lagMs };
}

/** Prints the largest kinds of records, and the relations with the most images of pages. */
async function printWal(admin: postgres.Sql, name: string, from: number, to: number): Promise<void> {
  await admin`create extension if not exists pg_walinspect`;
  const [start, end] = [from, to].map(
    (bytes) => `${(bytes / 2 ** 32) >>> 0}/${(bytes % 2 ** 32).toString(16)}`,
  );
  const kinds = await admin<{ kind: string; count: string; bytes: string }[]>`
    select "resource_manager/record_type" as kind, count, combined_size as bytes
    from pg_get_wal_stats(${start!}::pg_lsn, ${end!}::pg_lsn, true) order by combined_size desc limit ${SHOWN}`;
  const images = await admin<{ relation: string; count: string; bytes: string }[]>`
    select d.datname || ' ' || coalesce(c.relname, b.relfilenode::text) as relation, count(*), sum(b.block_fpi_length) as bytes
    from pg_get_wal_block_info(${start!}::pg_lsn, ${end!}::pg_lsn, false) as b
      left join pg_database as d on d.oid = b.reldatabase
      left join pg_class as c on pg_relation_filenode(c.oid) = b.relfilenode
    where b.block_fpi_length > 0 group by 1 order by 3 desc limit ${SHOWN}`;
  console.log(`\n${name}: ${to - from} bytes of WAL`);
  table(
    ["record", "count", "bytes"],
    kinds.map((row) => [row.kind, row.count, row.bytes]),
  );
  table(
    ["images of pages of", "count", "bytes"],
    images.map((row) => [row.relation, row.count, row.bytes]),
  );
}

async function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
