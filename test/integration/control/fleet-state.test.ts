import { expect, test } from "vitest";
import { quotaUse } from "../../../core/control/budgets";
import { fleetState, listWorkers, reportWorker } from "../../../core/control/fleet";
import { queueDepth } from "../../../core/queue";
import { countCalls } from "../../support/count-calls";
import { controlDatabase } from "../../support/database";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";
import { LIMITS } from "../../support/quota-limits";

test("workers report themselves with their leases, and delete their row when they stop", async () => {
  await using fleet = await startFleet({ workers: 2 });
  const { db } = fleet.ctx;
  const sourceId = fleet.sandbox.control.generate({ records: 20 });
  const base = await fleet.connect(sourceId);
  await fleet.synced(base.id);
  const workers = await until(
    async () => {
      const all = await listWorkers(db);
      return all.some((worker) => worker.bases === 1) ? all : undefined;
    },
    { what: "a worker to report the base that it holds" },
  );
  expect(workers.map(({ isAlive, pid, capacity }) => ({ isAlive, pid, capacity }))).toEqual(
    Array.from({ length: 2 }, () => ({ isAlive: true, pid: process.pid, capacity: 200 })),
  );
  expect(await fleetState(db)).toMatchObject({
    bases: { syncing: 1, starting: 0, paused: 0, needsAttention: 0 },
    oldestLagMs: expect.any(Number),
    oldestBaseId: base.id,
    oldestBaseName: base.name,
  });
  expect(await queueDepth(db)).toMatchObject({ active: 1 });
  const use = await until(
    async () => {
      const found = await quotaUse(db, base);
      return found.minutes.some(({ sync }) => sync > 0) ? found : undefined;
    },
    { what: "the sync's calls to be seen" },
  );
  expect(use.minutes).toHaveLength(15);
  expect(use.month.sync).toBeGreaterThan(0);
  await Promise.all(fleet.workers.map(({ worker }) => worker.stop()));
  expect(await listWorkers(db)).toEqual([]);
});

test("a worker without a report for 15 s is shown as silent", async () => {
  await using database = await controlDatabase();
  const { sql } = database;
  const worker = { id: "w", host: "alpha", pid: 1, startedAt: new Date(), bases: 0, capacity: 5 };
  await reportWorker(sql, worker);
  await sql`update processes set seen_at = now() - interval '16 seconds'`;
  expect(await listWorkers(sql)).toMatchObject([{ isAlive: false }]);
  await reportWorker(sql, { ...worker, bases: 3 });
  expect(await listWorkers(sql)).toMatchObject([{ isAlive: true, bases: 3 }]);
});

test("calls are counted by the minute and by the month, and minutes older than an hour are deleted", async () => {
  await using database = await controlDatabase();
  const { sql } = database;
  const base = { platform: "airtable", sourceBaseId: "appMinutes" };
  const key = "airtable:appMinutes";
  const now = Date.now();
  const count = (msAgo: number, sync: number, client: number) =>
    countCalls(sql, key, { sync, client }, now - msAgo);
  await count(2 * 3_600_000, 100, 0);
  await count(60_000, 7, 2);
  await count(60_000, 1, 1);
  await count(0, 5, 0);
  const { minutes, month, blocked } = await quotaUse(sql, base);
  expect(minutes.reduce((sum, minute) => sum + minute.sync, 0)).toBe(13);
  expect(minutes.reduce((sum, minute) => sum + minute.client, 0)).toBe(3);
  expect(minutes.at(-1)!.minute.getTime()).toBeGreaterThan(now - 120_000);
  // On the first of a month, two of these hours may be in the previous one.
  expect(month.sync + month.client).toBeGreaterThanOrEqual(5);
  expect(blocked).toBeNull();
  expect(await sql`select from quota_minutes where minute < now() - interval '61 minutes'`).toEqual([]);
  await sql`select quota_block(${key}, ${LIMITS}::source_limits, 30000, '', 5)`;
  expect((await quotaUse(sql, base)).blocked).toMatchObject({ reason: "rate_limited" });
});
