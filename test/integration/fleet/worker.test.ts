import { expect, test } from "vitest";
import { getBase, listRuns, updateSettings } from "../../../core/control/bases";
import { BasetideError } from "../../../core/errors";
import type { holdLease } from "../../../core/sync/lease";
import type { BaseCache } from "../../../core/sync/state";
import { controlDatabase } from "../../support/database";
import { faultProxy } from "../../support/fault-proxy";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { startWorkerProcess } from "../../support/worker-process";

test.concurrent("a worker that stops releases its base at once, and does not lose its current page", {
  timeout: 60_000,
}, async () => {
  await using fleet = await startFleet();
  const base = await fleet.connect(fleet.sandbox.control.generate({ records: 500, tables: 1 }));
  await fleet.synced(base.id);
  const next = await fleet.addWorker();
  const from = performance.now();
  await fleet.workers[0]!.stop();
  expect(performance.now() - from).toBeLessThan(5000);
  await fleet.synced(base.id, 10_000);
  expect(next.worker.busy).toBe(1);
});

test.concurrent("a worker whose lease does not end stops all the same, and gives the base back", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  const base = await fleet.connect(fleet.sandbox.control.generate({ records: 10, tables: 1 }));
  const { worker, stop } = await fleet.addWorker(() => new Promise(() => {}));
  await until(() => worker.busy === 1, { what: "the worker has the base" });
  const from = performance.now();
  await stop();
  expect(performance.now() - from).toBeLessThan(45_000);
  // A job that had failed would count as a crash of the base.
  const jobs = await fleet.ctx
    .db`select state from pgboss.job where name = 'sync' and singleton_key = ${base.id}`;
  expect([...jobs]).toEqual([{ state: "created" }]);
  await fleet.addWorker();
  await fleet.synced(base.id);
});

test.concurrent("a worker stops although the control plane does not answer", {
  timeout: 180_000,
}, async () => {
  await using database = await controlDatabase();
  const { hostname, port } = new URL(database.url);
  await using line = await faultProxy({ host: hostname, port: Number(port || 5432) }, { isPostgres: false });
  await using fleet = await startFleet({ workers: 0, databaseUrl: line.over(database.url) });
  await using worker = await startWorkerProcess(fleet);
  const base = await fleet.connect(fleet.sandbox.control.generate({ records: 10, tables: 1 }));
  await fleet.synced(base.id);
  line.stall();
  const from = performance.now();
  worker.kill("SIGTERM");
  await worker.exited;
  expect(performance.now() - from).toBeLessThan(30_000);
  line.restore();
});

test.concurrent("I7: a base whose worker is killed is synced by another one within 30 s", {
  timeout: 90_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  await using doomed = await startWorkerProcess(fleet);
  const base = await fleet.connect(fleet.sandbox.control.generate({ records: 300, tables: 1 }));
  await fleet.synced(base.id);
  doomed.kill("SIGKILL");
  const killed = performance.now();
  await fleet.addWorker();
  await fleet.synced(base.id, 30_000);
  expect(performance.now() - killed).toBeLessThan(30_000);
});

test.concurrent("a lease that does not end when its base must move to another worker is ended", {
  timeout: 90_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  const held = new Set<string>();
  let isDeaf = true;
  const deaf: typeof holdLease = (_, baseId, caches, { stop, kill }) => {
    caches.set(baseId, { epoch: 1, tables: new Map() } as BaseCache);
    held.add(baseId);
    return new Promise((_resolve, reject) => {
      kill.addEventListener("abort", () => reject(new BasetideError("sync_stopped")));
      stop.addEventListener("abort", () => isDeaf || reject(new BasetideError("sync_stopped")));
    });
  };
  await fleet.addWorker(deaf);
  for (let count = 0; count < 2; count++) {
    await fleet.connect(fleet.sandbox.control.generate({ records: 1, tables: 1 }));
  }
  await until(() => held.size === 2, { what: "one worker holds both bases", timeoutMs: 20_000 });
  const next = await fleet.addWorker();
  await until(() => next.worker.busy === 1, { what: "the next worker holds one of them", timeoutMs: 40_000 });
  isDeaf = false;
});

test.concurrent("a paused base is left alone, and continues when it is resumed", {
  timeout: 60_000,
}, async () => {
  await using fleet = await startFleet();
  const { ctx } = fleet;
  const connected = await fleet.connect(fleet.sandbox.control.generate({ records: 50, tables: 1 }));
  const base = await fleet.synced(connected.id);
  await updateSettings(ctx, base, { paused: true });
  await until(() => fleet.workers[0]!.worker.busy === 0, { what: "the lease ends", timeoutMs: 20_000 });
  const [last] = await listRuns(ctx.db, base.id, 1);
  expect(await getBase(ctx.db, base.id)).toMatchObject({ state: "paused" });
  const requests = fleet.sandbox.control.logSummary().requests;
  await fleet.workers[0]!.worker.stop();
  expect(fleet.sandbox.control.logSummary().requests).toBe(requests);
  expect((await listRuns(ctx.db, base.id, 1))[0]).toMatchObject({ id: last!.id });
  await updateSettings(ctx, base, { paused: false });
  await fleet.addWorker();
  await fleet.synced(base.id);
});
