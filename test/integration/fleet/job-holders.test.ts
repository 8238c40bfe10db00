/** Holders of jobs: one heartbeat for all jobs of a process, and how the jobs of a silent process fail. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createBase } from "../../../core/control/bases";
import { type OpenQueue, openQueue, type SyncJob } from "../../../core/queue";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";

let control: TestControl;
let one: OpenQueue;
let other: OpenQueue;
const BASES = ["bas_a", "bas_b", "bas_c"];

beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

/** What all queues use as performance.now(), ms. */
let clockMs = 0;
const open = () =>
  openQueue(control.ctx, control.ctx.config.databaseUrl!, { isWorker: true, now: () => clockMs });

/** Lets the queue send heartbeats for long enough to judge others by theirs. */
async function steady(queue: OpenQueue, jobs: SyncJob[] = []): Promise<void> {
  for (let beat = 0; beat < 4; beat++, clockMs += 3000) await queue.heartbeat(jobs);
}
beforeEach(async () => {
  [one, other] = [await open(), await open()];
  await control.ctx.db`delete from pgboss.job where name = 'sync'`;
  for (const baseId of BASES) await one.requestSync(baseId);
});
afterEach(async () => {
  await one.close();
  await other.close();
});

/** Takes all jobs, and sends the first heartbeat. */
async function takeAll(queue: OpenQueue): Promise<SyncJob[]> {
  const jobs = await queue.fetch(10);
  expect(jobs.map(({ baseId }) => baseId).toSorted()).toEqual(BASES);
  expect(await queue.heartbeat(jobs)).toEqual([]);
  return jobs;
}

const states = async () => {
  const rows = await control.ctx.db<{ state: string }[]>`
    select state::text as state from pgboss.job where name = 'sync' order by state`;
  return rows.map(({ state }) => state);
};
const age = (table: "holders" | "jobs") => {
  const { db } = control.ctx;
  return table === "holders"
    ? db`update job_holders set seen_at = seen_at - interval '11 s'`
    : db`update pgboss.job set started_on = started_on - interval '11 s' where name = 'sync'`;
};

test("a heartbeat writes one row, whatever the number of jobs, and keeps them all", async () => {
  const jobs = await takeAll(one);
  const rows = () => control.ctx.db`select id, xmin::text from pgboss.job where name = 'sync' order by id`;
  const before = await rows();
  await age("jobs");
  const aged = await rows();
  expect(aged).not.toEqual(before);
  for (let beat = 0; beat < 12; beat++) {
    expect(await one.heartbeat(jobs)).toEqual([]);
    await other.heartbeat([]);
    await other.reconcile();
  }
  expect(await rows()).toEqual(aged);
});

test("the jobs of a silent holder fail at another's next heartbeat; it learns of that at its own, and takes them back", async () => {
  const jobs = await takeAll(one);
  await steady(other);
  await age("holders");
  await other.heartbeat([]);
  expect(await states()).toEqual(["failed", "failed", "failed"]);
  expect(await one.heartbeat(jobs)).toEqual(jobs);
  for (const baseId of BASES) await one.requestSync(baseId);
  const back = await one.reclaim(BASES);
  expect(back.map(({ baseId }) => baseId).toSorted()).toEqual(BASES);
  expect(await one.heartbeat(back)).toEqual([]);
});

test("a holder that is late, and was not found silent, keeps its jobs", async () => {
  const jobs = await takeAll(one);
  await age("holders");
  expect(await one.heartbeat(jobs)).toEqual([]);
  await other.heartbeat([]);
  expect(await states()).toEqual(["active", "active", "active"]);
});

test("after an outage of the control plane, no holder loses its jobs to the first that is back", async () => {
  const jobs = await takeAll(one);
  await steady(other);
  // Neither can send a heartbeat for a minute.
  clockMs += 60_000;
  await age("holders");
  expect(await other.heartbeat([])).toEqual([]);
  expect(await other.reconcile()).toBe(0);
  clockMs += 3000;
  await other.heartbeat([]);
  expect(await one.heartbeat(jobs)).toEqual([]);
  await steady(other);
  expect(await states()).toEqual(["active", "active", "active"]);
  expect((await other.suspects(BASES)).size).toBe(0);
});

test("a holder that died during an outage loses its jobs soon after it", async () => {
  await takeAll(one);
  await steady(other);
  clockMs += 60_000;
  await age("holders");
  const backAt = clockMs;
  for (; (await states()).includes("active"); clockMs += 3000) await other.heartbeat([]);
  expect(clockMs - backAt).toBeLessThanOrEqual(9000);
});

test("jobs of a process that died before its first heartbeat fail, too", async () => {
  expect(await one.fetch(10)).toHaveLength(3);
  await steady(other);
  await age("holders");
  await other.heartbeat([]);
  expect(await states()).toEqual(["failed", "failed", "failed"]);
});

test("a holder that was found silent takes no job before its next heartbeat", async () => {
  const jobs = await takeAll(one);
  await steady(other);
  await age("holders");
  await other.heartbeat([]);
  for (const baseId of BASES) await other.requestSync(baseId);
  expect(await one.fetch(10)).toEqual([]);
  expect(await one.heartbeat(jobs)).toEqual(jobs);
  expect(await one.fetch(10)).toHaveLength(3);
});

test("a job that its holder does not know, as the answer that brought it was lost, goes to another one", async () => {
  const [unknown, ...known] = await takeAll(one);
  await age("jobs");
  for (let beat = 0; beat < 10; beat++) expect(await one.heartbeat(known)).toEqual([]);
  expect(await other.fetch(10)).toEqual([unknown]);
  expect(await states()).toEqual(["active", "active", "active"]);
});

test("a job whose release failed goes to another holder: within some heartbeats, and after an outage at once", async () => {
  const [first, second, third] = (await takeAll(one)) as [SyncJob, SyncJob, SyncJob];
  await age("jobs");
  await steady(one, [second, third]);
  expect(await other.fetch(10)).toEqual([first]);
  clockMs += 60_000;
  expect(await one.heartbeat([third])).toEqual([]);
  expect(await other.fetch(10)).toEqual([second]);
});

test("released jobs have no holder; those that a closed queue has not released are lost at once", async () => {
  const [first, ...rest] = await takeAll(one);
  await one.giveBack(first!, 0);
  await one.close();
  const taken = await other.fetch(10);
  expect(taken).toEqual([first]);
  await other.heartbeat(taken);
  expect(await states()).toEqual(["active", "failed", "failed"]);
  expect(rest).toHaveLength(2);
});

test("a heartbeat tells the load, and when the next job may be taken", async () => {
  const [first, ...rest] = await takeAll(one);
  await other.heartbeat([]);
  expect(other.load).toEqual({ jobs: 3, overdue: 0, readyAt: Infinity });
  await one.giveBack(first!, 60_000);
  await other.heartbeat([]);
  expect(other.load).toMatchObject({ jobs: 2, overdue: 0 });
  expect(other.load.readyAt - clockMs).toBeGreaterThan(30_000);
  expect(other.load.readyAt - clockMs).toBeLessThanOrEqual(60_000);
  await one.giveBack(rest[0]!, 0);
  await other.heartbeat([]);
  expect(other.load).toEqual({ jobs: 2, overdue: 0, readyAt: clockMs });
});

test("the bases of a silent holder may be taken after the heartbeat that finds it silent", async () => {
  const account = await control.addAccount("holders@example.com");
  const base = await createBase(control.ctx, account.id, {
    platform: "airtable",
    apiKey: GOOD_KEY,
    sourceBaseId: "appOne",
  });
  await one.reconcile();
  const taken = await one.fetch(10);
  expect(taken.map(({ baseId }) => baseId)).toContain(base.id);
  await one.heartbeat(taken);
  await steady(other);
  await age("holders");
  await other.heartbeat([]);
  expect(other.load.readyAt).toBeLessThanOrEqual(clockMs);
  expect((await other.fetch(10)).map(({ baseId }) => baseId)).toEqual([base.id]);
});

test("after a crash of the control plane's server, those that are alive keep their jobs, and those of the dead fail", async () => {
  await control.ctx.db`delete from bases`;
  const [first, ...rest] = await takeAll(one);
  await one.giveBack(first!, 0);
  const [taken] = await other.fetch(1);
  await other.heartbeat([taken!]);
  const third = await open();
  await steady(third);
  // The effect of recovery on an unlogged table.
  await control.ctx.db`truncate job_holders`;
  await third.heartbeat([]);
  clockMs += 3000;
  expect(await other.heartbeat([taken!])).toEqual([]);
  await third.heartbeat([]);
  expect(await states()).toEqual(["active", "active", "active"]);
  await steady(third);
  expect(await states()).toEqual(["active", "failed", "failed"]);
  expect(await other.heartbeat([taken!])).toEqual([]);
  expect(await one.heartbeat(rest)).toEqual(rest);
  await third.close();
});
