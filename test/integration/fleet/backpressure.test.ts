/** What fails or hangs takes no capacity from the rest. The concurrent tests mostly wait, each with its own service. */
import { expect, test, vi } from "vitest";
import { startWorker } from "../../../apps/worker/start";
import { type Base, getBase, resume } from "../../../core/control/bases";
import { getDatabase } from "../../../core/control/placement";
import { closeContext, createContext } from "../../../core/process";
import { queueDepth } from "../../../core/queue";
import { asAdmin } from "../../support/admin";
import { cuttableProxy } from "../../support/cuttable-proxy";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

/** More at once would delay each other's syncs. */
vi.setConfig({ maxConcurrency: 3 });

/** Longest time between two syncs of a small base that nothing blocks, ms. */
const USUAL_GAP_MS = 3000;

/** Only elapsed time shows that nothing happens, ms. */
const QUIET_MS = 5000;

/** Completes when the base has begun and completed `count` more syncs, none of them late. */
async function keepsSyncing(fleet: Fleet, { id }: Base, count: number): Promise<void> {
  for (let sync = 0; sync < count; sync++) await fleet.synced(id, sync === 0 ? 10_000 : USUAL_GAP_MS);
}

/** Disconnects all users of the database, and renames it. */
async function rename(from: string, to: string): Promise<void> {
  await asAdmin((admin) =>
    until(
      async () => {
        await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${from}`;
        await admin`alter database ${admin(from)} rename to ${admin(to)}`;
        return true;
      },
      { what: `${from} to be renamed`, retryErrors: true },
    ),
  );
}

function requestsOf(fleet: Fleet, { sourceBaseId }: Base): number {
  return fleet.sandbox.control.logSummary().bases[sourceBaseId]?.requests ?? 0;
}

test.concurrent("a base whose key is refused has no job, sends nothing, and takes no capacity from another one", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet({ env: { WORKER_CONCURRENCY: "1" } });
  const { sandbox, ctx } = fleet;
  const key = sandbox.control.createKey();
  const bad = await fleet.connect(sandbox.control.generate({ records: 20 }), { paused: true });
  await ctx.db`update bases set encrypted_api_key = ${ctx.secrets.encrypt(key, `bases.api_key:${bad.id}`)}
    where id = ${bad.id}`;
  sandbox.control.revokeKey(key);
  await resume(ctx, bad);
  await until(async () => (await getBase(ctx.db, bad.id)).state === "needs_attention", {
    what: "the bad key is detected",
  });
  const before = requestsOf(fleet, bad);
  const good = await fleet.connect(sandbox.control.generate({ records: 20 }));
  await keepsSyncing(fleet, good, 5);
  expect(requestsOf(fleet, bad)).toBe(before);
  expect(before).toBeLessThanOrEqual(1);
  expect(await queueDepth(ctx.db)).toEqual({ waiting: 0, active: 1 });
  // Its next attempt waits, and the other base is not affected.
  await ctx.db`update bases set attempted_at = now() - interval '4 minutes' where id = ${bad.id}`;
  await until(async () => (await queueDepth(ctx.db)).waiting === 1, { what: "the next try to be queued" });
  await keepsSyncing(fleet, good, 5);
});

test.concurrent("a base whose replica is gone yields its capacity in a full worker to the waiting base", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet({ env: { WORKER_CONCURRENCY: "1" } });
  const { sandbox, ctx } = fleet;
  const lost = await fleet.connect(sandbox.control.generate({ records: 20 }), { paused: true });
  const { name } = await getDatabase(ctx.db, lost.database.id);
  await rename(name, `${name}_away`);
  try {
    await resume(ctx, lost);
    await until(async () => (await getBase(ctx.db, lost.id)).error !== null, {
      what: "the loss to be noticed",
    });
    const good = await fleet.connect(sandbox.control.generate({ records: 20 }));
    await fleet.synced(good.id, 20_000);
    await keepsSyncing(fleet, good, 8);
  } finally {
    await rename(`${name}_away`, name);
  }
});

test.concurrent.each([
  ["swept", {}],
  ["in rapid mode", { rapid: true }],
  ["in live mode", { live: true }],
])(
  "a base %s whose source always fails yields its capacity in a full worker to the waiting base",
  {
    timeout: 120_000,
  },
  async (_mode, settings) => {
    await using fleet = await startFleet({ env: { WORKER_CONCURRENCY: "1" } });
    const { sandbox, ctx } = fleet;
    const failing = await fleet.connect(sandbox.control.generate({ records: 20 }), settings);
    await fleet.synced(failing.id);
    sandbox.control.addFault({ kind: "status_500", base: failing.sourceBaseId });
    const isNoticed = async () => {
      const { error, live } = await getBase(ctx.db, failing.id);
      return error !== null || live?.state === "failing";
    };
    await until(isNoticed, { what: "the failure to be noticed", timeoutMs: 30_000 });
    const good = await fleet.connect(sandbox.control.generate({ records: 20 }));
    await fleet.synced(good.id, 25_000);
    // Its next attempt does not fail, and it keeps its job although others always wait.
    await fleet.workers[0]!.stop();
    sandbox.control.clearFaults();
    for (const [{ id }, waitedSeconds] of [
      [failing, 60],
      [good, 30],
    ] as const) {
      await ctx.db`
        update pgboss.job set created_on = now() - ${waitedSeconds} * interval '1 s',
          start_after = now() - ${waitedSeconds} * interval '1 s'
        where singleton_key = ${id} and state < 'active'`;
    }
    await fleet.addWorker();
    await fleet.synced(failing.id, 20_000);
    expect(await queueDepth(ctx.db)).toEqual({ waiting: 1, active: 1 });
  },
);

test("reading ahead is bounded while the replica does not answer: one page in memory and one in transit per table", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  const { sandbox } = fleet;
  const base = await fleet.connect(sandbox.control.generate({ records: 3000, tables: 1 }));
  const first = await fleet.addWorker();
  await fleet.synced(base.id);
  await first.worker.stop();
  const owner = await fleet.owner(base);
  // As after a crash.
  await owner`delete from public_swap._known_rows`;
  const { name } = (await getBase(fleet.ctx.db, base.id)).tables[0]!;
  const held = Promise.withResolvers<void>();
  const locking = owner.begin(async (sql) => {
    await sql`lock table ${sql(`public.${name}`)} in access exclusive mode`;
    const before = requestsOf(fleet, base);
    // It must compare each record with the table.
    await fleet.addWorker();
    await until(() => requestsOf(fleet, base) >= before + 3, {
      what: "the schema and two pages to be asked for",
    });
    await held.promise;
    const paths = sandbox.control
      .log(base.sourceBaseId)
      .slice(before)
      .map((one) => one.path);
    return paths.filter((path) => path.includes("pageSize"));
  });
  await Bun.sleep(QUIET_MS);
  held.resolve();
  expect(await locking).toHaveLength(2);
  await fleet.synced(base.id);
});

test("I7: a worker whose control plane was unavailable for longer than its jobs live keeps its bases, and continues within 5 s", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  const { sandbox, ctx } = fleet;
  await using line = await cuttableProxy(ctx.config.databaseUrl!);
  const workerContext = createContext({ ...ctx.config, databaseUrl: line.url }, "worker");
  const worker = await startWorker(workerContext, { port: 0 });
  try {
    const bases = [];
    for (let seed = 0; seed < 5; seed++) {
      bases.push(await fleet.connect(sandbox.control.generate({ records: 30, seed })));
    }
    await Promise.all(bases.map((base) => fleet.synced(base.id)));
    line.cut();
    await ctx.db`update pgboss.job set state = 'failed' where name = 'sync' and state = 'active'`;
    await Bun.sleep(QUIET_MS);
    line.restore();
    const mended = performance.now();
    await Promise.all(bases.map((base) => fleet.synced(base.id, 15_000)));
    expect(performance.now() - mended).toBeLessThan(5000);
    expect(worker.worker.busy).toBe(5);
    await until(async () => Bun.deepEquals(await queueDepth(ctx.db), { waiting: 0, active: 5 }), {
      what: "each base has one active job",
    });
  } finally {
    line.restore();
    await worker.stop();
    await closeContext(workerContext);
  }
});
