/** Which bases are suspected of crashing their workers: derived from failed jobs in the control plane. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type OpenQueue, openQueue } from "../../../core/queue";
import { type TestControl, testControl } from "../../support/control-support";
import { addPlainBases } from "../../support/plain-bases";

let control: TestControl;
let queue: OpenQueue;
let ids: string[];

beforeAll(async () => {
  control = await testControl();
  queue = await openQueue(control.ctx, control.ctx.config.databaseUrl!, { isWorker: false });
});
afterAll(async () => {
  const { db } = control.ctx;
  await db`delete from bases`;
  await db`delete from databases`;
  await queue?.close();
  await control?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  const { db } = control.ctx;
  await db`delete from base_crashes`;
  await db`delete from pgboss.job where name = 'sync'`;
  ids = await addPlainBases(control, 3);
});

/** Their worker dies: as its missing heartbeat leaves the jobs. */
async function workerDies(baseIds: string[]): Promise<void> {
  const { db } = control.ctx;
  for (const id of baseIds) await queue.requestSync(id);
  await db`
    update pgboss.job set state = 'failed', completed_on = clock_timestamp()
    where name = 'sync' and state < 'completed' and singleton_key = any (${baseIds})`;
}

/** As a worker requests them. */
const suspects = async (baseIds = ids) => [...(await queue.suspects(baseIds)).keys()].sort();

test("a base becomes a suspect when three workers in a row have died, each of them counted once", async () => {
  const [first = "", second = ""] = ids;
  await workerDies([first, second]);
  expect(await suspects()).toEqual([]);
  expect(await suspects()).toEqual([]);
  await workerDies([first]);
  await workerDies([first]);
  expect(await suspects()).toEqual([first]);
  expect([...(await queue.suspects([first])).values()]).toEqual([
    { baseId: first, company: null, restMs: 0 },
  ]);
});

test("a job that was lost while its worker lived is no crash", async () => {
  const [first = ""] = ids;
  for (let times = 0; times < 5; times++) {
    await workerDies([first]);
    const jobs = await control.ctx.db<{ id: string }[]>`
      select id from pgboss.job where name = 'sync' and state = 'failed'`;
    await queue.forgive(jobs.map(({ id }) => ({ id, baseId: first })));
    expect(await suspects()).toEqual([]);
  }
});

test("a worker that dies while a suspect is in a child process does not count against the suspect", async () => {
  const [first = ""] = ids;
  for (let times = 0; times < 3; times++) await workerDies([first]);
  await suspects();
  const before = await control.ctx.db`select crashes, suspected_at from base_crashes`;
  for (let times = 0; times < 3; times++) {
    await workerDies([first]);
    expect(await suspects()).toEqual([first]);
  }
  expect(await control.ctx.db`select crashes, suspected_at from base_crashes`).toEqual(before);
});

test("only a child that held one base quarantines it, for longer each time", async () => {
  const [first = "", second = ""] = ids;
  for (let times = 0; times < 3; times++) await workerDies([first, second]);
  await suspects();
  expect(await queue.crashed([first, second])).toBeNull();
  const known = await queue.suspects(ids);
  expect(known.get(first)).toEqual({ baseId: first, company: 2, restMs: 0 });
  expect(known.get(second)).toEqual({ baseId: second, company: 2, restMs: 0 });
  const rests = [];
  for (let times = 0; times < 8; times++) rests.push(Math.round((await queue.crashed([first]))! / 1000));
  expect(rests).toEqual([60, 120, 240, 480, 960, 1920, 3600, 3600]);
  // Its owner may request another attempt, but not in quick succession.
  const { restMs } = (await queue.suspects(ids)).get(first)!;
  expect(restMs).toBeGreaterThan(50_000);
  expect(restMs).toBeLessThanOrEqual(60_000);
  expect((await queue.suspects(ids)).get(second)).toMatchObject({ restMs: 0 });
});

test("a suspect that is synced without a crash for long enough is cleared, and its next trial is longer", async () => {
  const { db } = control.ctx;
  const [first = ""] = ids;
  const trialSeconds = async () => {
    for (let seconds = 15; seconds < 5000; seconds *= 2) {
      await db`update base_crashes set suspected_at = now() - ${seconds + 1} * interval '1 s'`;
      if (await queue.behaved(first)) return seconds;
    }
    return Infinity;
  };
  for (let times = 0; times < 3; times++) await workerDies([first]);
  expect(await suspects()).toEqual([first]);
  expect(await queue.behaved(first)).toBe(false);
  expect(await trialSeconds()).toBe(30);
  expect(await suspects()).toEqual([]);
  // It crashes again: a suspect at once, for twice as long.
  await workerDies([first]);
  expect(await suspects()).toEqual([first]);
  expect(await trialSeconds()).toBe(60);
  // After a day without a crash it starts over.
  await db`update base_crashes set counted_until = now() - interval '25 hours'`;
  await db`delete from pgboss.job where name = 'sync'`;
  await workerDies([first]);
  expect(await suspects()).toEqual([]);
});
