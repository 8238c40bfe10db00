/** The workers' watchdog: one at a time ends and pauses what exceeds limits on a cluster, and reports it. */
import { createServer } from "node:net";
import pino from "pino";
import postgres from "postgres";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createBase } from "../../../core/control/bases";
import { getDatabase, startWatchdog } from "../../../core/control/placement";
import { databaseUrl } from "../../../core/replica";
import { asAdmin } from "../../support/admin";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { until } from "../../support/poll";
import { type ReplicaServer, replicaServer } from "../../support/replica-server";

let replicas: ReplicaServer;
let control: TestControl;
let role: string;
let url: string;

beforeAll(async () => {
  replicas = await replicaServer();
  control = await testControl(replicas.clusterUrl);
  const account = await control.addAccount("watched@example.com");
  const base = await createBase(control.ctx, account.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  const database = await getDatabase(control.ctx.db, base.database.id);
  role = database.role;
  url = Object.assign(new URL(databaseUrl(replicas.clusterUrl, database.name)), {
    username: role,
    password: "of-the-tenant",
  }).href;
  await asAdmin((admin) => admin.unsafe(`alter role ${role} password 'of-the-tenant'`), replicas.clusterUrl);
});
afterAll(async () => {
  await control?.[Symbol.asyncDispose]();
  await replicas?.[Symbol.asyncDispose]();
});

function connect(): postgres.Sql {
  const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false });
  onTestFinished(() => sql.end({ timeout: 1 }).catch(() => {}));
  return sql;
}

/** A worker's watchdog. */
function watch() {
  const metrics = new Registry();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const watchdog = startWatchdog({ ...control.ctx, metrics, log });
  onTestFinished(() => watchdog.stop());
  return {
    stop: () => watchdog.stop(),
    lines: (text: string) => lines.filter(({ msg }) => String(msg).includes(text)),
    count: async (name: string) => {
      const metric = await metrics.getSingleMetric(name)!.get();
      return metric.values.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

test("only one of several workers checks at a time; what it ends is in its metric and log; another one continues when it stops", {
  timeout: 60_000,
}, async () => {
  const workers = [watch(), watch(), watch()];
  const turns = new Set<number>();
  for (let round = 0; round < 2; round++) {
    const sql = connect();
    await sql.unsafe(`set default_transaction_read_only = off`);
    await sql.unsafe(`begin; alter role ${role} set application_name = 'mine'`).simple();
    const before = workers.flatMap((worker) => worker.lines("session of a customer terminated")).length;
    await until(
      () => workers.flatMap((worker) => worker.lines("session of a customer terminated")).length > before,
      {
        what: "the session is ended",
        timeoutMs: 20_000,
      },
    );
    const ended = workers.flatMap((worker) => worker.lines("session of a customer terminated")).slice(-1);
    expect(ended).toMatchObject([{ role, reason: "transaction_id" }]);
    // The worker that has run the watchdog dies.
    const index = workers.findIndex((worker) => worker.lines("session of a customer terminated").length > 0);
    expect(await workers[index]!.count("basetide_watchdog_ended_total")).toBe(1);
    turns.add(index);
    await workers[index]!.stop();
    workers.splice(index, 1);
  }
  expect(workers).toHaveLength(1);
  const lookedAt = async () => {
    const [row] = await control.ctx.db<{ at: Date }[]>`select checked_at as at from watchdog_clock`;
    return row!.at.getTime();
  };
  const first = await lookedAt();
  const next = await until(
    async () => {
      const at = await lookedAt();
      return at > first && at;
    },
    { what: "the next schema check" },
  );
  expect(next - first).toBeGreaterThanOrEqual(2990);
});

test("a reader that uses up transaction ids is paused, and another worker ends the pause of one that has died", {
  timeout: 90_000,
}, async () => {
  const next = () =>
    asAdmin(async (admin) => {
      const [row] = await admin<{ id: string }[]>`select pg_snapshot_xmax(pg_current_snapshot())::text as id`;
      return Number(row!.id);
    }, replicas.clusterUrl);
  const worker = watch();
  const from = await next();
  let isPaused = false;
  const sql = connect();
  const burning = (async () => {
    for (;;) {
      const code = await sql
        .unsafe("notify x; commit;".repeat(500))
        .simple()
        .then(
          () => "",
          (error: { code?: string }) => String(error.code),
        );
      if (code === "53300") break;
    }
    isPaused = true;
  })();
  await until(() => isPaused, { what: "the role is paused", timeoutMs: 30_000 });
  await burning;
  if (process.env.SHOW_IDS) console.log("ids until the pause:", (await next()) - from);
  const still = await next();
  await until(async () => (await worker.count("basetide_watchdog_paused_total")) === 1, {
    what: "the metric",
  });
  expect(worker.lines("customer paused")).toMatchObject([{ role }]);
  expect((await next()) - still).toBeLessThan(100);
  await worker.stop();
  await asAdmin(
    (admin) => admin.unsafe(`comment on role ${role} is 'basetide: pause 1, until 2001-01-01T00:00:00.000Z'`),
    replicas.clusterUrl,
  );
  const other = watch();
  await until(() => other.lines("pause ended").length > 0, {
    what: "the pause is ended",
    timeoutMs: 20_000,
  });
  expect(await connect()`select 1 as one`).toEqual([{ one: 1 }]);
});

test("a cluster that accepts connections and never answers is reported, and the others are checked as often", {
  timeout: 60_000,
}, async () => {
  const { db, secrets } = control.ctx;
  const silent = createServer(() => {});
  await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as { port: number };
  const id = "clu_silent";
  const address = secrets.encrypt(`postgres://x:y@127.0.0.1:${port}/postgres`, `clusters.admin_url:${id}`);
  await db`
    insert into clusters (id, name, region, encrypted_admin_url, public_host, public_port)
    values (${id}, 'silent', 'eu-west-1', ${address}, '127.0.0.1', ${port})`;
  await db`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select 'dat_silent', id, 'clu_silent', 'bt_silent', 'bt_silent', 'x' from accounts limit 1`;
  const watchdog = watch();
  const ended = () => watchdog.lines("session of a customer terminated").length;
  for (let nth = 1; nth <= 3; nth++) {
    const sql = connect();
    await sql.unsafe("set default_transaction_read_only = off");
    await sql.unsafe(`begin; alter role ${role} set application_name = 'mine'`).simple();
    await until(() => ended() >= nth, { what: "the session is ended", timeoutMs: 7000 });
  }
  await until(() => watchdog.lines("").some(({ cluster }) => cluster === "silent"), {
    what: "the cluster is reported",
    timeoutMs: 20_000,
  });
  await watchdog.stop();
});
