/**
 * Measures many idle live bases on a small server of replicas: the most connections at any time, logins a minute, and
 * errors.
 *
 * Each base is connected and synced normally, LANES at a time. The arrival of notifications is recorded in the control
 * plane instead of awaited; from then on the base's feed is read every five minutes. The control plane has its own
 * server.
 *
 * Run: `bun run bench rest`, with REST_BASES (1000) on a server with REST_MOST (100) max_connections, REST_WORKERS (2)
 * and REST_MINUTES (6, more than one read of every feed). A database takes 10 MB, in memory if there is room.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { ConnectionBudget } from "../../core/replica/connection-budget";
import { startLiveFleet } from "../support/live-fleet";
import { until } from "../support/poll";
import { scratchFolder } from "../support/scratch";
import { startTestServer } from "../support/server";
import { table } from "./print";

const BASES = Number(process.env.REST_BASES ?? 1000);
const MOST = Number(process.env.REST_MOST ?? 100);
const WORKERS = Number(process.env.REST_WORKERS ?? 2);
const MINUTES = Number(process.env.REST_MINUTES ?? 6);
/** How many bases are connected at the same time. */
const LANES = 24;
/** Bases of one user of the source: all bases of a user share 50 requests a second. */
const BASES_OF_A_USER = 20;
const DATABASE_BYTES = 12 * 1024 ** 2;
const SAMPLE_MS = 100;
const PROGRESS_MS = 20_000;
const RECORDS = 5;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("rest", BASES * DATABASE_BYTES + 2 * 1024 ** 3);
  console.log(`databases are in ${folder}`);
  releases.defer(() => rmSync(folder, { recursive: true, force: true }));
  const replicas = await startEmbeddedPostgres({
    dataDir: join(folder, "postgres"),
    port: 0,
    log: createLogger("fatal", "bench"),
    settings: { fsync: "off", max_connections: String(MOST) },
  });
  releases.defer(() => replicas.stop());
  const control = await startTestServer();
  releases.defer(() => control.stop());
  const admin = postgres(replicas.url, { max: 1, connection: { application_name: "bench" } });
  releases.defer(() => admin.end({ timeout: 1 }));
  const refused = countRefused();
  const fleet = releases.use(
    await startLiveFleet({
      databaseUrl: control.url,
      workers: WORKERS,
      env: {
        REPLICA_URL: replicas.url,
        WORKER_CONCURRENCY: String(BASES),
        ACCOUNT_DATABASES: "100000",
        CONNECTION_OVERCOMMIT: "100000",
      },
      sandbox: { settings: { rateLimitOff: true } },
      leavesBases: true,
    }),
  );
  const { db } = fleet.ctx;
  const keys = Array.from({ length: Math.ceil(BASES / BASES_OF_A_USER) }, (_, user) =>
    fleet.sandbox.control.createKey({
      user: {
        id: `usr${String(user).padStart(14, "0")}`,
        email: `${user}@example.org`,
        name: `User ${user}`,
      },
    }),
  );
  const records = Array.from({ length: RECORDS }, (_, index) => ({ fields: { Name: `Task ${index}` } }));
  const fields = [{ name: "Name", type: "singleLineText" }];
  const newBase = () => fleet.sandbox.control.createBase({ tables: [{ name: "Tasks", fields, records }] });
  const rows: (string | number)[][] = [];
  const observe = async (what: string, work: () => Promise<unknown>) => {
    const [from, logins, refusals] = [performance.now(), await loginsOf(admin), refused.count];
    const cpu = process.cpuUsage();
    const most = await sampled(admin, work);
    const minutes = (performance.now() - from) / 60_000;
    const { user, system } = process.cpuUsage(cpu);
    const after = await loginsOf(admin);
    const row = {
      ...most,
      replicaLogins: (after.replicas - logins.replicas) / minutes,
      adminLogins: (after.admin - logins.admin) / minutes,
      refused: refused.count - refusals,
      cores: (user + system) / 60e6 / minutes,
      megabytes: process.memoryUsage.rss() / 1024 ** 2,
    };
    rows.push([
      `${what} (${minutes.toFixed(1)} min)`,
      row.all,
      row.replicas,
      row.admin,
      row.replicaLogins.toFixed(1),
      row.adminLogins.toFixed(1),
      row.refused,
      row.cores.toFixed(2),
      row.megabytes.toFixed(0),
    ]);
    console.log(`${what}: ${JSON.stringify(row)}`);
    return row;
  };
  const connected = { begun: 0, live: 0, failed: 0 };
  const isOn = async (id: string) =>
    (await db`select from live_feeds where base_id = ${id} and state = 'on'`).length > 0;
  const connectAll = async () => {
    while (connected.begun < BASES) {
      const key = keys[connected.begun++ % keys.length]!;
      try {
        const { id } = await fleet.connect(newBase(), { live: true, turbo: true }, key);
        await until(() => isOn(id), { what: `${id} is live`, timeoutMs: 300_000, intervalMs: 250 });
        await notified(db, id);
        connected.live++;
      } catch (error) {
        connected.failed++;
        console.error(`not connected: ${error instanceof Error ? error.message : error}`);
      }
    }
  };
  const started = performance.now();
  const progress = setInterval(() => {
    const seconds = (performance.now() - started) / 1000;
    console.log(`${seconds.toFixed(0)} s: ${JSON.stringify(connected)}`);
  }, PROGRESS_MS);
  await observe(`${BASES} bases are connected`, () => Promise.all(Array.from({ length: LANES }, connectAll)));
  clearInterval(progress);
  await observe("they come to rest", () => Bun.sleep(60_000));
  const [errors] = await db<{ count: number }[]>`
    select count(*)::int as count from bases where error_code is not null`;
  const atRest = await observe(`${BASES} bases at rest`, () => Bun.sleep(MINUTES * 60_000));
  table(
    [
      "",
      "most connections",
      "to replicas",
      "of admins",
      "logins a minute: replicas",
      "admins",
      "53300",
      "cores of the service",
      "its MB",
    ],
    rows,
  );
  const [after] = await db<{ count: number; synced: number }[]>`
    select count(*) filter (where error_code is not null)::int as count,
      count(*) filter (where sync_completed_at is not null)::int as synced from bases`;
  console.log(
    `bases: ${after!.synced} synced, ${connected.failed} not live in time, with an error ${errors!.count} before and ${after!.count} after the rest`,
  );
  const isWhole = connected.live === BASES && after!.count === 0;
  return isWhole && atRest.refused === 0 && atRest.all <= MOST - 3;
}

/** As if a notification had arrived: the feed is no longer polled. */
async function notified(db: postgres.Sql, baseId: string): Promise<void> {
  await db`update live_feeds set notified_at = now() where base_id = ${baseId}`;
  await db`select pg_notify('basetide_notification', ${baseId})`;
}

/** How many logins were refused because the server was full. */
function countRefused() {
  const counted = { count: 0 };
  const { refused } = ConnectionBudget.prototype;
  ConnectionBudget.prototype.refused = function (this: ConnectionBudget) {
    counted.count++;
    return refused.call(this);
  };
  return counted;
}

async function loginsOf(admin: postgres.Sql) {
  const [row] = await admin<{ replicas: number; admin: number }[]>`
    select coalesce(sum(sessions) filter (where datname ~ '^bt_'), 0)::int as replicas,
      coalesce(sum(sessions) filter (where datname !~ '^bt_'), 0)::int as admin from pg_stat_database`;
  return row!;
}

/** The most connections while `work` runs. */
async function sampled(admin: postgres.Sql, work: () => Promise<unknown>) {
  const most = { all: 0, replicas: 0, admin: 0 };
  let isOver = false;
  const sampling = (async () => {
    while (!isOver) {
      const [now] = await admin<{ all: number; replicas: number; admin: number }[]>`
        select count(*)::int as all, count(*) filter (where datname ~ '^bt_')::int as replicas,
          count(*) filter (where datname !~ '^bt_')::int as admin
        from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
      most.all = Math.max(most.all, now!.all);
      most.replicas = Math.max(most.replicas, now!.replicas);
      most.admin = Math.max(most.admin, now!.admin);
      await Bun.sleep(SAMPLE_MS);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await sampling;
  }
  return most;
}
