/**
 * Measures connections to a server of replicas: how many a base has open in each state, whether many live bases fit on
 * a small server, and the cost of a connection that is opened for one statement. The bases are polled, as no
 * notification has arrived yet: they rest for a second at a time, the shortest rest that there is.
 *
 * Run: `bun run bench connections`, with CONNECTIONS_BASES (100) on a server with CONNECTIONS_MOST (20)
 * max_connections.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { startProxy } from "../../apps/proxy/start";
import { startEmbeddedPostgres } from "../../apps/up/postgres/embedded-postgres";
import { createLogger } from "../../core/log";
import { closeContext, createContext } from "../../core/process";
import { connectReplica } from "../../core/replica";
import { faultProxy } from "../support/fault-proxy";
import { connectLive, startLiveFleet } from "../support/live-fleet";
import { cpuSeconds, parentOf } from "../support/process-usage";
import { scratchFolder } from "../support/scratch";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const BASES = Number(process.env.CONNECTIONS_BASES ?? 100);
const MOST = Number(process.env.CONNECTIONS_MOST ?? 20);
const POLL_SECONDS = 90;
const SAMPLE_MS = 40;
const LOGINS = 50;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const folder = scratchFolder("connections");
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
  const admin = postgres(replicas.url, { max: 1 });
  releases.defer(() => admin.end({ timeout: 1 }));
  await costs(replicas.url, Number(new URL(replicas.url).port), admin);

  const fleet = releases.use(
    await startLiveFleet({
      databaseUrl: control.url,
      env: {
        REPLICA_URL: replicas.url,
        WORKER_CONCURRENCY: String(2 * BASES),
        ACCOUNT_DATABASES: "10000",
        CONNECTION_OVERCOMMIT: "100000",
      },
      sandbox: { settings: { rateLimitOff: true } },
    }),
  );
  const proxyContext = createContext(fleet.ctx.config, "proxy");
  releases.defer(() => closeContext(proxyContext));
  const proxy = await startProxy(proxyContext, { port: 0 });
  releases.defer(() => proxy.stop());
  const { control: source, key } = fleet.sandbox;
  const records = Array.from({ length: 500 }, (_, index) => ({ fields: { Name: `Task ${index}` } }));
  const newBase = () =>
    source.createBase({
      tables: [{ name: "Tasks", fields: [{ name: "Name", type: "singleLineText" }], records }],
    });

  const rows: (string | number)[][] = [];
  const observe = async (what: string, work: () => Promise<unknown>) => {
    const { most, mostOfBase } = await sampled(admin, work);
    rows.push([what, mostOfBase, most]);
    console.log(`${what}: ${mostOfBase} of one base, ${most} of all`);
    return { most, mostOfBase };
  };
  const swept = await fleet.connect(newBase(), { turbo: true, live: false });
  await fleet.synced(swept.id);
  const sweeping = await observe("a base is swept", () => Bun.sleep(20_000));
  await observe("it is resynced", () => fleet.synced(swept.id));
  await fleet.ctx.db`update bases set is_paused = true, state = 'paused' where id = ${swept.id}`;
  const liveSource = newBase();
  await connectLive(fleet, liveSource);
  const polled = await observe("a live base is polled, and swept in the background", () => Bun.sleep(20_000));
  const url = `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${liveSource}/Tasks`;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ fields: { Name: "written" } });
  await observe("20 clients write 100 records through the proxy", () =>
    Promise.all(
      Array.from({ length: 20 }, async () => {
        for (let nth = 0; nth < 5; nth++) await (await fetch(url, { method: "POST", headers, body })).text();
      }),
    ),
  );
  let made = 1;
  await observe(`${BASES} live bases are connected`, async () => {
    const connect = async () => {
      while (made < BASES) {
        made++;
        await connectLive(fleet, newBase(), 300_000);
      }
    };
    await Promise.all([connect(), connect(), connect()]);
  });
  const all = await observe(`${BASES} live bases are polled for ${POLL_SECONDS} s`, () =>
    Bun.sleep(POLL_SECONDS * 1000),
  );
  table(["", "most of one base", "most of all"], rows);
  const fits = ratio(all.most / (MOST - 3), 1);
  console.log(`of the ${MOST} connections that the server allows: ${fits.text}`);
  const [failed] = await fleet.ctx.db<{ count: number }[]>`
    select count(*)::int as count from bases where error_code is not null`;
  console.log(`bases with an error: ${failed!.count}`);
  return fits.isWithin && sweeping.mostOfBase <= 1 && polled.mostOfBase <= 1 && failed!.count === 0;
}

/** The most connections of the service while `work` runs: of one database, and of all. */
async function sampled(admin: postgres.Sql, work: () => Promise<unknown>) {
  let [most, mostOfBase, isOver] = [0, 0, false];
  const sampling = (async () => {
    while (!isOver) {
      const counts = await admin<{ count: number }[]>`
        select count(*)::int as count from pg_stat_activity
        where application_name = 'basetide' and datname <> 'postgres' group by datname`;
      most = Math.max(
        most,
        counts.reduce((sum, { count }) => sum + count, 0),
      );
      mostOfBase = Math.max(mostOfBase, ...counts.map(({ count }) => count));
      await Bun.sleep(SAMPLE_MS);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await sampling;
  }
  return { most, mostOfBase };
}

/** The cost of a connection for one statement compared with an open connection, locally and at 80 ms. */
async function costs(url: string, port: number, admin: postgres.Sql): Promise<void> {
  const [row] = await admin<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const server = parentOf(row!.pid);
  await using line = await faultProxy({ host: "127.0.0.1", port }, { isPostgres: false });
  const rows: (string | number)[][] = [];
  for (const delayMs of [0, 40]) {
    line.delayMs = delayMs;
    const kept = connectReplica(line.over(url));
    await kept`select 1`;
    const usual = await timed(server, () => kept`select 1`);
    await kept.end({ timeout: 1 });
    const made = await timed(server, async () => {
      const sql = connectReplica(line.over(url));
      await sql`select 1`;
      await sql.end({ timeout: 1 });
    });
    // As between the cycles of a lease: the pool knows the server's types.
    const pool = connectReplica(line.over(url)) as unknown as postgres.Sql & { closeIdle(): number };
    await pool`select 1`;
    const again = await timed(server, async () => {
      pool.closeIdle();
      await pool`select 1`;
    });
    await pool.end({ timeout: 1 });
    for (const [what, { ms, clientMs, serverMs }] of [
      ["connection kept", usual],
      ["pool made, and ended", made],
      ["connected again", again],
    ] as const)
      rows.push([`${2 * delayMs} ms away: ${what}`, ms.toFixed(1), clientMs.toFixed(2), serverMs.toFixed(2)]);
  }
  table(["one statement", "ms", "CPU ms here", "CPU ms of the server"], rows);
}

async function timed(server: number, work: () => Promise<unknown>) {
  const [from, cpu, serverCpu] = [performance.now(), process.cpuUsage(), cpuSeconds(server)];
  for (let nth = 0; nth < LOGINS; nth++) await work();
  const { user, system } = process.cpuUsage(cpu);
  return {
    ms: (performance.now() - from) / LOGINS,
    clientMs: (user + system) / 1000 / LOGINS,
    serverMs: ((cpuSeconds(server) - serverCpu) * 1000) / LOGINS,
  };
}
