/** The run history: which syncs share a row, what the base shows of its last ones, and how long runs are kept. */

import { PgBoss } from "pg-boss";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runHousekeeping } from "../../../apps/worker/housekeeping";
import {
  activeBaseIds,
  createBase,
  getBase,
  listRuns,
  recordRun,
  requestResync,
} from "../../../core/control/bases";
import { trimTables } from "../../../core/control/retention";
import { indicatorOf } from "../../../core/control/status";
import { BasetideError } from "../../../core/errors";
import { openQueue } from "../../../core/queue";
import type { RunReport } from "../../../core/sync/host";
import { about } from "../../support/about";
import {
  connectAs,
  GOOD_KEY,
  SOURCE_BASES,
  type TestControl,
  testControl,
} from "../../support/control-support";
import { until } from "../../support/poll";

let control: TestControl;
let accounts = 0;

beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

/** A connected base of an account of its own. */
async function newBase(): Promise<string> {
  const account = await control.addAccount(`runs-${accounts++}@example.org`);
  const sourceBaseId = SOURCE_BASES[0]!.id;
  return (await createBase(control.ctx, account.id, { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId }))
    .id;
}

const DAY_MS = 24 * 3600_000;
/** Noon of yesterday: a run that is 30 days old is deleted. */
const from = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS / 2;
/** Seconds, and one more: the reported time is accurate only to some ms. */
const MINUTE = 61;

/** A sync that began this many seconds after noon. */
function report(atSeconds: number, changes: Partial<RunReport> & { durationMs?: number } = {}): RunReport {
  const { durationMs = 500, ...rest } = changes;
  const startedAt = new Date(from + atSeconds * 1000);
  return {
    kind: "sweep",
    startedAt,
    completedAt: new Date(startedAt.getTime() + durationMs),
    seen: 10,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 2,
    waitMs: 100,
    ...rest,
  };
}

const failure = (atSeconds: number) =>
  report(atSeconds, { completedAt: null, error: new BasetideError("source_unavailable") });

/** `kind×syncs` of all rows, the oldest first. */
async function history(baseId: string): Promise<string[]> {
  return (await listRuns(control.ctx.db, baseId, 1000))
    .map((run) => `${run.error_code ? "failed " : ""}${run.kind}×${run.syncs}`)
    .reverse();
}

async function record(baseId: string, ...reports: RunReport[]): Promise<void> {
  for (const one of reports) await recordRun(control.ctx.db, baseId, one);
}

test("unchanged sweeps share a row for an hour, with their number and duration", async () => {
  const id = await newBase();
  await record(id, report(0, { kind: "first", inserted: 10 }));
  for (let minute = 1; minute <= 75; minute++) {
    await record(id, report(minute * MINUTE, { durationMs: minute === 30 ? 2500 : 500 }));
  }
  expect(await history(id)).toEqual(["first×1", "sweep×60", "sweep×15"]);
  const [last, hour] = await listRuns(control.ctx.db, id, 2);
  expect(hour).toMatchObject({
    started_at: about(new Date(from + MINUTE * 1000)),
    completed_at: about(new Date(from + 60 * MINUTE * 1000 + 500)),
    duration_ms: (59 * 500 + 2500) / 60,
    longest_ms: 2500,
    seen: 10,
    requests: 120,
    wait_ms: 6000,
  });
  expect(last!.started_at).toEqual(about(new Date(from + 61 * MINUTE * 1000)));
});

test("sweeps with changes share a row for a minute, and their changes add up", async () => {
  const id = await newBase();
  for (let tenth = 0; tenth < 12; tenth++) await record(id, report((tenth * MINUTE) / 6, { updated: 1 }));
  expect(await history(id)).toEqual(["sweep×6", "sweep×6"]);
  expect(await listRuns(control.ctx.db, id, 1)).toMatchObject([{ updated: 6, seen: 10 }]);
});

test("a failure or a rebuild has a row of its own, and ends those before it", async () => {
  const id = await newBase();
  await record(id, report(0), report(1), failure(2), failure(3), report(4), report(5));
  await record(id, report(6, { kind: "rebuild" }), report(7));
  expect(await history(id)).toEqual([
    "sweep×2",
    "failed sweep×1",
    "failed sweep×1",
    "sweep×2",
    "rebuild×1",
    "sweep×1",
  ]);
});

test("cycles and background sweeps have rows of their own, and the cycles determine the state of the base", async () => {
  const id = await newBase();
  await record(id, report(0, { kind: "first" }));
  for (let second = 4; second < 40; second += 4) {
    await record(id, report(second, { kind: "rapid", durationMs: 4000 }));
    await record(id, report(second - 1, { isBackground: true, durationMs: 3000, tables: [] }));
  }
  expect(await history(id)).toEqual(["first×1", "rapid×9", "sweep×9"]);
  const base = await getBase(control.ctx.db, id);
  expect(base).toMatchObject({
    sync: { kind: "rapid", durationMs: 4000, startedAt: about(new Date(from + 36_000)) },
    sweep: {
      startedAt: about(new Date(from + 35_000)),
      completedAt: about(new Date(from + 38_000)),
      backgroundMs: 3000,
    },
    recentSweepMs: Array(9).fill(4000),
  });
  await record(
    id,
    report(41, { isBackground: true, completedAt: null, error: new BasetideError("source_timeout") }),
  );
  expect(await getBase(control.ctx.db, id)).toMatchObject({ error: null, sweep: base.sweep });
  expect((await history(id)).at(-1)).toBe("failed sweep×1");
});

test("the usual values come from the last 20 syncs, however few rows they share", async () => {
  const id = await newBase();
  for (let second = 0; second < 30; second++) await record(id, report(second, { durationMs: 10_000 }));
  const usual = await getBase(control.ctx.db, id);
  expect(usual.recentSweepMs).toEqual(Array(20).fill(10_000));
  await record(id, report(30, { durationMs: 20_001 }));
  const base = await getBase(control.ctx.db, id);
  expect(indicatorOf(base, base.sync!.completedAt)).toMatchObject({ color: "yellow" });
});

test("a cycle does not count as a requested sync", async () => {
  const id = await newBase();
  await requestResync(control.ctx, await getBase(control.ctx.db, id));
  const later = () => ({ startedAt: new Date(), completedAt: new Date() });
  await record(id, report(0, { kind: "rapid", ...later() }));
  expect((await getBase(control.ctx.db, id)).resyncRequestedAt).not.toBeNull();
  const requested = await getBase(control.ctx.db, id);
  await recordRun(control.ctx.db, id, report(0, { kind: "rebuild", ...later() }), requested);
  expect((await getBase(control.ctx.db, id)).resyncRequestedAt).toBeNull();
});

test("a resync that is requested while a sweep runs is not done by it, however late its report arrives", async () => {
  const { db } = control.ctx;
  const id = await newBase();
  const base = await getBase(db, id);
  const began = new Date();
  await requestResync(control.ctx, base);
  await using late = connectAs(control.ctx.config.databaseUrl!);
  // The report's statement waits for the connection, as on a slow network.
  const busy = late.db`select pg_sleep(0.5)`.execute();
  await Promise.all([
    busy,
    recordRun(late.db, id, report(0, { startedAt: began, completedAt: new Date() }), base),
  ]);
  expect((await getBase(db, id)).resyncRequestedAt).not.toBeNull();
});

/** Rows that began this many days ago. */
async function oldRuns(id: string, ...daysAgo: number[]): Promise<void> {
  await control.ctx.db`
    insert into sync_runs (base_id, kind, started_at, seen, inserted, updated, deleted, requests, wait_ms)
    select ${id}, 'sweep', now() - make_interval(days => days), 0, 0, 0, 0, 0, 0
    from unnest(${daysAgo}::int[]) as days`;
}

test("runs are kept for 30 days", async () => {
  const id = await newBase();
  await oldRuns(id, 1, 29, 31, 400);
  expect(await trimTables(control.ctx.db)).toEqual({ sync_runs: 2 });
  expect(await listRuns(control.ctx.db, id, 10)).toHaveLength(2);
});

test("workers delete old runs on a schedule that they share", { timeout: 30_000 }, async () => {
  const { ctx } = control;
  const id = await newBase();
  await oldRuns(id, 31);
  const url = ctx.config.databaseUrl!;
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("housekeeping", { policy: "singleton" });
  await boss.send("housekeeping");
  const queues = await Promise.all([1, 2].map(() => openQueue(ctx, url, { isWorker: true })));
  try {
    for (const queue of queues) await runHousekeeping(queue.boss, ctx);
    const [schedule] = await ctx.db`select name, cron from pgboss.schedule`;
    expect(schedule).toEqual({ name: "housekeeping", cron: expect.stringMatching(/^\d+ \* \* \* \*$/) });
    await until(async () => (await listRuns(ctx.db, id, 1)).length === 0, {
      what: "the old run is deleted",
      timeoutMs: 20_000,
    });
  } finally {
    for (const queue of queues) await queue.close();
    await boss.stop({ graceful: false });
  }
});

test("a base whose monthly cap is spent is tried every hour, and when the month begins", async () => {
  const { ctx } = control;
  const id = await newBase();
  await record(id, report(0, { completedAt: null, error: new BasetideError("source_billing_limit") }));
  const isTried = async (attemptedAt: string) => {
    await ctx.db.unsafe(`update bases set attempted_at = ${attemptedAt} where id = '${id}'`);
    return (await activeBaseIds(ctx.db)).includes(id);
  };
  const thisMonth = "date_trunc('month', now() at time zone 'UTC') at time zone 'UTC'";
  expect(await isTried(`greatest(now() - interval '59 minutes', ${thisMonth})`)).toBe(false);
  expect(await isTried("now() - interval '61 minutes'")).toBe(true);
  expect(await isTried(`${thisMonth} - interval '1 second'`)).toBe(true);
});
