/** Holders of jobs: one heartbeat for all jobs of a process, and how the jobs of a silent process fail. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type OpenQueue, openQueue, type SyncJob } from "../../../core/queue";
import { type TestControl, testControl } from "../../support/control-support";

let control: TestControl;
let one: OpenQueue;
let other: OpenQueue;
const BASES = ["bas_a", "bas_b", "bas_c"];

beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

const open = () => openQueue(control.ctx, control.ctx.config.databaseUrl!, { isWorker: true });
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

test("jobs of a process that died before its first heartbeat, or before it claimed them, fail, too", async () => {
  const [job] = await one.boss.fetch("sync");
  expect(job).toBeDefined();
  expect(await one.fetch(10)).toHaveLength(2);
  // A process looks for them once in 10 s, and this one has not yet.
  await age("jobs");
  await other.reconcile();
  expect(await states()).toEqual(["failed", "failed", "failed"]);
});

test("a job that its holder does not know, as the answer that brought it was lost, goes to another one", async () => {
  const [unknown, ...known] = await takeAll(one);
  await age("jobs");
  for (let beat = 0; beat < 10; beat++) expect(await one.heartbeat(known)).toEqual([]);
  expect(await other.fetch(10)).toEqual([unknown]);
  expect(await states()).toEqual(["active", "active", "active"]);
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
