/** A base whose syncs crash or freeze processes affects three workers at most, and stops no other base. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Base, getBase } from "../../../core/control/bases";
import { indicatorOf } from "../../../core/control/status";
import { toBaseJson } from "../../../core/control/status/base-json";
import { type Fleet, startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { startWorkerProcess } from "../../support/worker-process";

/** Connected, and synced once by a worker. */
async function connect(fleet: Fleet): Promise<Base> {
  const base = await fleet.connect(fleet.sandbox.control.generate({ records: 50, tables: 1 }));
  await until(async () => (await getBase(fleet.ctx.db, base.id)).sync, {
    what: "the first sync",
    timeoutMs: 30_000,
  });
  return base;
}

/** As left by three dead workers. */
async function suspect(fleet: Fleet, ...bases: Base[]): Promise<void> {
  for (const { id } of bases)
    await fleet.ctx.db`insert into base_crashes (base_id, crashes, suspected_at) values (${id}, 3, now())`;
}

const children = (fleet: Fleet) => fleet.workers.flatMap(({ worker }) => worker.children);

/** The child that holds exactly these bases, and syncs them. */
async function childOf(fleet: Fleet, ...bases: Base[]): Promise<number> {
  const ids = bases.map(({ id }) => id).sort();
  const { pid } = await until(
    () => children(fleet).find((child) => Bun.deepEquals(child.bases.toSorted(), ids)),
    { what: "a child holds the bases", timeoutMs: 30_000 },
  );
  await Promise.all(ids.map((id) => fleet.synced(id, 30_000)));
  return pid;
}

test.concurrent("a base whose three workers died is synced in a child process from then on, and so is its neighbor", {
  timeout: 180_000,
}, async () => {
  await using fleet = await startFleet({ workers: 0 });
  const bases = [0, 1].map(() => fleet.sandbox.control.generate({ records: 50, tables: 1 }));
  const [one, other] = (await Promise.all(bases.map((id) => fleet.connect(id)))) as [Base, Base];
  for (let deaths = 0; deaths < 3; deaths++) {
    await using worker = await startWorkerProcess(fleet);
    await Promise.all([one, other].map(({ id }) => fleet.synced(id, 30_000)));
    expect(worker.output()).not.toContain("child process");
    worker.kill("SIGKILL");
    await worker.exited;
  }
  // After being killed repeatedly for reasons unrelated to a base, they are synced again as fast as before.
  const from = performance.now();
  await using worker = await startWorkerProcess(fleet);
  await Promise.all([one, other].map(({ id }) => fleet.synced(id, 30_000)));
  expect(performance.now() - from).toBeLessThan(25_000);
  expect(worker.output()).toContain("syncing a suspect base in a child process");
  const pid = Number(/"pid":(\d+)[^\n]*syncing a suspect base/.exec(worker.output())?.[1]);
  process.kill(pid, 0);
  // A child ends with its worker.
  worker.kill("SIGKILL");
  await until(() => !isRunning(pid), { what: "the child has ended" });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // In a container, no process may reap it: then it is a zombie.
    return process.platform !== "linux" || !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

test.runIf(process.platform === "linux")(
  "a frozen child ends with its worker",
  { concurrent: true, timeout: 120_000 },
  async () => {
    await using fleet = await startFleet();
    const base = await connect(fleet);
    await fleet.workers[0]!.stop();
    await suspect(fleet, base);
    await using worker = await startWorkerProcess(fleet);
    await fleet.synced(base.id, 30_000);
    const pid = Number(/"pid":(\d+)[^\n]*syncing a suspect base/.exec(worker.output())?.[1]);
    process.kill(pid, "SIGSTOP");
    worker.kill("SIGKILL");
    try {
      await until(() => !isRunning(pid), { what: "the frozen child has ended" });
    } finally {
      if (isRunning(pid)) process.kill(pid, "SIGKILL");
    }
  },
);

test.concurrent("a base that crashes its child is identified and quarantined without a worker's death; its neighbors continue", {
  timeout: 180_000,
}, async () => {
  await using fleet = await startFleet({ env: { WORKER_CONCURRENCY: "20" } });
  const [killer, ...neighbors] = (await Promise.all([0, 1, 2].map(() => connect(fleet)))) as [
    Base,
    ...Base[],
  ];
  const innocent = await connect(fleet);
  await fleet.workers[0]!.stop();
  await suspect(fleet, killer, ...neighbors);
  const { worker } = await fleet.addWorker();
  process.kill(await childOf(fleet, killer, ...neighbors), "SIGKILL");
  const alone = await childOf(fleet, killer);
  expect(await getBase(fleet.ctx.db, killer.id)).toMatchObject({ state: "active", error: null });

  process.kill(alone, "SIGKILL");
  const ill = await until(
    async () => {
      const base = await getBase(fleet.ctx.db, killer.id);
      return base.error && base;
    },
    { what: "the base is quarantined" },
  );
  expect(ill).toMatchObject({ state: "needs_attention", error: { code: "sync_crashed" } });
  expect(indicatorOf(ill, new Date())).toMatchObject({ color: "red" });
  expect(toBaseJson(ill, new Date()).error).toMatchObject({
    code: "sync_crashed",
    message: expect.stringContaining("database"),
  });
  await Promise.all([...neighbors, innocent].map(({ id }) => fleet.synced(id, 30_000)));
  expect(children(fleet).flatMap(({ bases }) => bases)).not.toContain(killer.id);
  const [job] = await fleet.ctx.db<{ state: string; rest_s: number }[]>`
    select state, extract(epoch from start_after - now())::float8 as rest_s from pgboss.job
    where singleton_key = ${killer.id} and state <= 'active'`;
  expect(job?.state).toBe("created");
  expect(job!.rest_s).toBeGreaterThan(40);
  expect(job!.rest_s).toBeLessThanOrEqual(60);
  expect(worker.busy).toBe(3);

  // Once it behaves, it is treated like any other base again.
  await fleet.ctx.db`update base_crashes set suspected_at = now() - interval '1 hour'`;
  await fleet.ctx.queue.requestSync(killer.id);
  await fleet.synced(killer.id, 30_000);
  expect(await getBase(fleet.ctx.db, killer.id)).toMatchObject({ state: "active", error: null });
});

test.concurrent("a frozen child is killed, and its base quarantined", { timeout: 120_000 }, async () => {
  await using fleet = await startFleet();
  const base = await connect(fleet);
  await fleet.workers[0]!.stop();
  await suspect(fleet, base);
  const { worker } = await fleet.addWorker();
  const pid = await childOf(fleet, base);
  process.kill(pid, "SIGSTOP");
  await until(async () => (await getBase(fleet.ctx.db, base.id)).error?.code === "sync_crashed", {
    what: "the base is quarantined",
    timeoutMs: 60_000,
  });
  expect(isRunning(pid)).toBe(false);
  expect(worker.busy).toBe(0);
});
