/** How fresh a base was: ages of runs, rollups by hour, periods. One control plane for all tests. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Base, createBase, getBase, recordRun } from "../../../core/control/bases";
import {
  baseHistory,
  type CurrentPeriod,
  callsOver,
  lagHistory,
  rollUpHours,
  savePeriods,
} from "../../../core/control/history";
import { CallCounter, MOST_CALLERS } from "../../../core/limiter/call-counter";
import type { RunReport } from "../../../core/sync/host";
import { GOOD_KEY, type TestControl, testControl } from "../../support/control-support";
import { countCalls } from "../../support/count-calls";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let control: TestControl;
let base: Base;
let now: Date;

beforeAll(async () => {
  control = await testControl();
  const owner = await control.addAccount("history@example.com");
  const made = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" };
  base = await createBase(control.ctx, owner.id, made);
  now = (await getBase(control.ctx.db, base.id)).createdAt;
});
afterAll(() => control?.[Symbol.asyncDispose]());

const agoMs = (ms: number) => new Date(now.getTime() - ms);

function ran(endedMsAgo: number, facts: Partial<RunReport> = {}, tookMs = 1000) {
  return recordRun(control.ctx.db, base.id, {
    kind: "sweep",
    startedAt: agoMs(endedMsAgo + tookMs),
    completedAt: agoMs(endedMsAgo),
    seen: 3,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 2,
    waitMs: 0,
    ...facts,
  });
}

const runs = () => control.ctx.db<{ syncs: number; lag: number; max: number | null }[]>`
  select syncs, round(lag_ms / syncs / 100) * 100 as lag, round(max_lag_ms / 100) * 100 as max from sync_runs where base_id = ${base.id} order by id`;

test("the age of the data runs from the start of one sync to the end of the next; one that stands out has its own row", async () => {
  await ran(3 * HOUR_MS, { kind: "first", inserted: 3 });
  await ran(3 * HOUR_MS - 4000);
  await ran(3 * HOUR_MS - 8000);
  // Nothing ran for ten minutes.
  await ran(3 * HOUR_MS - 10 * MINUTE_MS);
  expect(await runs()).toMatchObject([
    // Before the first sync there was no data.
    { syncs: 1, lag: null, max: null },
    { syncs: 2, lag: 3000, max: 5000 },
    { syncs: 1, max: 10 * MINUTE_MS - 8000 + 1000 },
  ]);
});

test("neither a failure nor a sweep in the background says anything about the age", async () => {
  await ran(2 * HOUR_MS, { completedAt: null, error: { code: "source_timeout", message: "No answer" } });
  await ran(2 * HOUR_MS - MINUTE_MS, { isBackground: true });
  expect((await runs()).slice(-2)).toMatchObject([{ max: null }, { max: null }]);
});

test("past hours are rolled up once, and again without a change", async () => {
  const rows = () =>
    control.ctx.db`
      select day, to_json(lag_p50_ms) as lag_p50_ms, to_json(lag_max_ms) as lag_max_ms, to_json(changed) as changed
      from base_days where base_id = ${base.id} order by day`;
  await rollUpHours(control.ctx.db);
  const first = await rows();
  const values = first
    .flatMap(({ lag_max_ms }) => lag_max_ms as (number | null)[])
    .filter((one) => one !== null);
  expect(Math.max(...values)).toBeCloseTo(10 * MINUTE_MS - 7000, -3);
  expect(first.every(({ lag_p50_ms, changed }) => lag_p50_ms.length === 24 && changed.length === 24)).toBe(
    true,
  );
  await rollUpHours(control.ctx.db);
  expect(await rows()).toEqual(first);
});

test("a period is one row until its cause changes; one that ends for a moment goes on", async () => {
  const { db } = control.ctx;
  const see = (minutesAgo: number, period: CurrentPeriod | null) =>
    db.begin((tx) => savePeriods(tx, new Map([[base.id, period]]), agoMs(minutesAgo * MINUTE_MS)));
  const red: CurrentPeriod = { kind: "outage", label: "Key rejected", asOf: agoMs(60 * MINUTE_MS) };
  const paced: CurrentPeriod = { kind: "budget", label: "Paced", asOf: null };
  await see(50, red);
  await see(49, red);
  await see(40, null);
  await see(30, paced);
  await see(25, null);
  await see(20, paced);
  await see(10, { ...red, label: "Late" });
  const periods = await db`
    select kind, label, round(extract(epoch from ${now}::timestamptz - began_at) / 60)::int as began,
      round(extract(epoch from ${now}::timestamptz - ended_at) / 60)::int as ended
    from base_periods where base_id = ${base.id} order by began_at`;
  expect(periods).toEqual([
    { kind: "outage", label: "Key rejected", began: 50, ended: 40 },
    { kind: "budget", label: "Paced", began: 30, ended: 10 },
    { kind: "outage", label: "Late", began: 10, ended: null },
  ]);
});

test("the history has every bucket, the age within an outage, and calls by hour", async () => {
  const { db } = control.ctx;
  await countCalls(db, "airtable:appOne", { sync: 7, client: 3 }, now.getTime() - 2 * HOUR_MS);
  await countCalls(db, "airtable:appOne", { sync: 1, client: 0 }, now.getTime() - 2 * HOUR_MS);
  for (const [range, count] of [
    ["1h", 60],
    ["24h", 96],
    ["30d", 120],
  ] as const) {
    const { lag, calls, periods } = await baseHistory(db, base, range, now);
    expect(lag).toHaveLength(count);
    expect(periods).toHaveLength(3);
    const most = Math.max(...lag.map(({ maxMs }) => maxMs ?? 0));
    expect(most).toBeGreaterThan(9 * MINUTE_MS);
    const sums = calls.reduce((sum, one) => [sum[0]! + one.sync, sum[1]! + one.client], [0, 0]);
    if (range !== "1h") expect(sums).toEqual([8, 3]);
  }
});

test("the chart of a new base begins with an hour, that of an older one with a day, or the first span that has data", async () => {
  const { ctx } = control;
  const owner = await control.addAccount("ranges@example.com");
  const made = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appTwo" };
  const { id } = await createBase(ctx, owner.id, made);
  const usual = async (at: Date) => {
    const { range, lag, silence } = await lagHistory(ctx.db, await getBase(ctx.db, id), undefined, at);
    return { range, silence, hasData: lag.some(({ p50Ms }) => p50Ms !== null) };
  };
  const began = (await getBase(ctx.db, id)).createdAt;
  const after = (ms: number) => new Date(began.getTime() + ms);
  const sync = (kind: "first" | "sweep", endMs: number) =>
    recordRun(ctx.db, id, {
      ...{ kind, startedAt: after(endMs - 1000), completedAt: after(endMs) },
      ...{ seen: 3, inserted: 3, updated: 0, deleted: 0, requests: 2, waitMs: 0 },
    });
  expect(await usual(after(MINUTE_MS))).toEqual({ range: "1h", silence: "no_data", hasData: false });
  await sync("first", 3 * MINUTE_MS);
  expect(await usual(after(4 * MINUTE_MS))).toEqual({ range: "1h", silence: "new", hasData: false });
  await sync("sweep", 5 * MINUTE_MS);
  expect(await usual(after(6 * MINUTE_MS))).toMatchObject({ range: "1h", hasData: true });
  expect(await usual(after(3 * HOUR_MS))).toMatchObject({ range: "24h", hasData: true });
  expect(await usual(after(25 * HOUR_MS))).toMatchObject({
    range: "24h",
    hasData: false,
    silence: "not_read",
  });
});

test("calls are shown by kind and by key, at most ten keys a day, and keys only to the account that is alone with the base", async () => {
  const { ctx } = control;
  const { db } = ctx;
  const key = "airtable:appOne";
  await db`delete from quota_days where key = ${key}`;
  const counter = new CallCounter(ctx);
  const other = new CallCounter(ctx);
  const count = (by: CallCounter, caller: string, calls: number) => {
    for (let call = 0; call < calls; call++) by.client(key, caller);
  };
  count(counter, "own", 30);
  count(counter, "console", 25);
  for (let n = 0; n < 12; n++) count(n % 2 ? counter : other, `patKey${n}…`, n + 1);
  await Promise.all([counter.flush(), other.flush()]);
  count(counter, "own", 10);
  await counter.flush();
  const stored = await db<{ caller: string }[]>`select caller from quota_callers where key = ${key}`;
  expect(stored).toHaveLength(MOST_CALLERS);
  // Clients' are 40 own, 25 of the console, 78 of other keys.
  await countCalls(db, key, { sync: 5, client: 0 });

  const [clock] = await db<{ now: Date }[]>`select now() as now`;
  for (const per of ["hour", "day"] as const) {
    const { buckets, callers } = await callsOver(db, base, per, clock!.now);
    const last = buckets.at(-1)!;
    expect([last.sync, last.client, last.console]).toEqual([5, 118, 25]);
    expect(callers.slice(0, 2)).toEqual([
      { kind: "own", name: "", calls: 40 },
      { kind: "key", name: "patKey11…", calls: 12 },
    ]);
    expect(callers.at(-1)!.kind).toBe("others");
    expect(callers.reduce((sum, { calls }) => sum + calls, 0)).toBe(118);
  }
  const history = await baseHistory(db, base, "24h", clock!.now);
  expect(history.calls.at(-1)!.console).toBe(25);

  const second = await control.addAccount("history-second@example.com");
  const made = { platform: "airtable", apiKey: GOOD_KEY, sourceBaseId: "appOne" };
  const theirs = await createBase(ctx, second.id, made);
  for (const shared of [base, theirs]) {
    const { callers, buckets } = await callsOver(db, shared, "day", clock!.now);
    expect(callers).toEqual([{ kind: "others", name: "", calls: 118 }]);
    expect(buckets.at(-1)!.console).toBe(25);
  }
});

test("counts of calls that cannot be stored are kept for the next time", async () => {
  const { ctx } = control;
  let isAway = true;
  const db = ((...args: Parameters<typeof ctx.db>) =>
    isAway ? Promise.reject(new Error("away")) : ctx.db(...args)) as typeof ctx.db;
  const counter = new CallCounter({ ...ctx, db });
  counter.client("airtable:appAway", "own");
  await counter.flush();
  isAway = false;
  counter.client("airtable:appAway", "own");
  await counter.flush();
  const [row] = await ctx.db`
    select (select sum(c)::int from unnest(calls) as c) as calls from quota_callers where key = 'airtable:appAway'`;
  expect(row).toEqual({ calls: 2 });
});
