/** A worker keeps a base's job for as long as the base is synced: for days, without a crash being counted. */
import { expect, onTestFinished, test } from "vitest";
import { openQueue } from "../../../core/queue";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

const BASES = 3;

test("bases that are held for days keep their jobs and workers, and no crash is counted", {
  timeout: 300_000,
}, async () => {
  await using fleet = await startFleet({ workers: 2 });
  const { db } = fleet.ctx;
  const bases = await Promise.all(
    Array.from({ length: BASES }, () =>
      fleet.connect(fleet.sandbox.control.generate({ records: 50, tables: 1 })),
    ),
  );
  for (const base of bases) await fleet.synced(base.id);
  const held = () => db<{ id: string; holder: string; state: string }[]>`
    select id, data->>'holder' as holder, state::text as state from pgboss.job
    where name = 'sync' order by singleton_key, id`;
  // Both workers hold some, and none is moving.
  await until(
    async () => {
      const jobs = await held();
      return jobs.length === BASES && new Set(jobs.map((job) => job.holder)).size === 2;
    },
    { what: "the bases are shared out" },
  );
  const before = await held();
  await db`
    update pgboss.job set started_on = started_on - interval '3 days', created_on = created_on - interval '3 days'
    where name = 'sync'`;
  const queue = await openQueue(fleet.ctx, fleet.ctx.config.databaseUrl!, { isWorker: false });
  onTestFinished(() => queue.close());
  await db`update pgboss.queue set monitor_on = null`;
  await queue.boss.supervise("sync");
  expect(await held()).toEqual(before);
  expect([...(await db`select base_id, crashes from base_crashes`)]).toEqual([]);
});

test("a job that waits or is active for weeks is neither deleted nor expires", async () => {
  await using fleet = await startFleet({ workers: 0 });
  const { db, config, queue } = fleet.ctx;
  await queue.requestSync("bas_waiting");
  const worker = await openQueue(fleet.ctx, config.databaseUrl!, { isWorker: true });
  onTestFinished(() => worker.close());
  await db`
    update pgboss.job set start_after = start_after - interval '60 days', created_on = created_on - interval '60 days',
      keep_until = keep_until - interval '60 days' where name = 'sync'`;
  await worker.boss.supervise("sync");
  await db`update pgboss.queue set maintain_on = null, monitor_on = null`;
  await worker.boss.supervise("sync");
  const jobs = await worker.fetch(10);
  expect(jobs.map((job) => job.baseId)).toEqual(["bas_waiting"]);
  await db`update pgboss.job set started_on = started_on - interval '60 days' where name = 'sync'`;
  await db`update pgboss.queue set maintain_on = null, monitor_on = null`;
  await worker.boss.supervise("sync");
  expect(await worker.heartbeat(jobs)).toEqual([]);
  const [row] = await db<{ active: number }[]>`
    select count(*)::int as active from pgboss.job where name = 'sync' and state = 'active'`;
  expect(row).toEqual({ active: 1 });
});
