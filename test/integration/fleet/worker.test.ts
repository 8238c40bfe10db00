import { expect, test } from "vitest";
import { getBase, listRuns, updateSettings } from "../../../core/control/bases";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { startWorkerProcess } from "../../support/worker-process";

test("a worker that stops releases its base at once, and does not lose its current page", {
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

test("I7: a base whose worker is killed is synced by another one within 30 s", {
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

test("a paused base is left alone, and continues when it is resumed", { timeout: 60_000 }, async () => {
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
