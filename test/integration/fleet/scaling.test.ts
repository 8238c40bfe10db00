import { expect, test } from "vitest";
import type { RunningWorker } from "../../../apps/worker/start";
import { listBases } from "../../../core/control/bases";
import { listWorkers } from "../../../core/control/fleet";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { startWorkerProcess } from "../../support/worker-process";

const BASES = 10;

/** Small bases, all synced once. */
async function connectAll(fleet: Fleet, count = BASES): Promise<void> {
  const { sandbox } = fleet;
  const bases = [];
  for (let seed = 0; seed < count; seed++) {
    bases.push(await fleet.connect(sandbox.control.generate({ records: 30, tables: 1, seed })));
  }
  await Promise.all(bases.map((base) => fleet.synced(base.id)));
}

/** Every base has begun and completed a sync since `from`. @returns ms since then */
async function allSynced({ ctx }: Fleet, from: Date, timeoutMs: number): Promise<number> {
  await until(
    async () => (await listBases(ctx.db)).every((base) => base.sync && base.sync.startedAt > from),
    {
      what: "every base to be synced again",
      timeoutMs,
    },
  );
  return Date.now() - from.getTime();
}

async function heldBy({ ctx }: Fleet): Promise<number[]> {
  const alive = (await listWorkers(ctx.db)).filter((worker) => worker.isAlive);
  return alive.map((worker) => worker.bases).toSorted((a, b) => a - b);
}

async function evenly(fleet: Fleet, held: number[], timeoutMs: number): Promise<void> {
  await until(async () => Bun.deepEquals(await heldBy(fleet), held), {
    what: `workers to hold ${held}`,
    timeoutMs,
  });
}

async function givenUp({ port }: RunningWorker): Promise<number> {
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^basetide_worker_bases_given_up_total\S* (\d+)/m.exec(metrics)?.[1]);
}

test.concurrent("two workers that join one hold as many bases as it does within a minute, and no base is moved in vain", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet();
  await connectAll(fleet);
  const [first] = fleet.workers as [RunningWorker];
  expect(first.worker.busy).toBe(BASES);
  const joined = performance.now();
  await Promise.all([fleet.addWorker(), fleet.addWorker()]);
  const busy = () => fleet.workers.map(({ worker }) => worker.busy).toSorted((a, b) => a - b);
  await until(() => Bun.deepEquals(busy(), [3, 3, 4]), { what: "even shares", timeoutMs: 60_000 });
  expect(performance.now() - joined).toBeLessThan(60_000);
  await allSynced(fleet, new Date(), 10_000);
  expect(busy()).toEqual([3, 3, 4]);
  expect(first.worker.busy).toBe(4);
  expect(await givenUp(first)).toBe(6);
});

test.concurrent("I7: bases of killed and of frozen workers sync elsewhere, and one that resumes is fenced and works again", {
  timeout: 180_000,
}, async () => {
  await using fleet = await startFleet();
  await using killed = await startWorkerProcess(fleet);
  await using frozen = await startWorkerProcess(fleet);
  await connectAll(fleet);
  await evenly(fleet, [3, 3, 4], 60_000);
  killed.kill("SIGKILL");
  frozen.kill("SIGSTOP");
  expect(await allSynced(fleet, new Date(), 30_000)).toBeLessThan(30_000);
  expect(fleet.workers[0]!.worker.busy).toBe(BASES);
  frozen.kill("SIGCONT");
  // Whichever it notices first: its heartbeat, or the replica's epoch.
  await frozen.says(/job lost to another worker|lease lost/);
  await evenly(fleet, [5, 5], 60_000);
  await allSynced(fleet, new Date(), 10_000);
});

test.concurrent("the bases of a worker that gets SIGTERM are free when it ends, and are synced by others", {
  timeout: 120_000,
}, async () => {
  await using fleet = await startFleet();
  await using leaving = await startWorkerProcess(fleet);
  await connectAll(fleet);
  await evenly(fleet, [5, 5], 60_000);
  leaving.kill("SIGTERM");
  const from = new Date();
  expect(await leaving.exited).toBe(0);
  // Nothing waits for its heartbeats.
  expect(await heldBy(fleet)).toHaveLength(1);
  const held = await fleet.ctx.db`
    select from pgboss.job as j where j.name = 'sync' and j.state = 'active'
      and not exists (select from job_holders as h where h.id = j.data->>'holder' and h.seen_at > '-infinity')`;
  expect(held).toHaveLength(0);
  await allSynced(fleet, from, 10_000);
});
