/** Call budgets on a simulated clock: any load through any month, and the pace of an idle base. */
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { Random } from "../../apps/sandbox/random";
import { nextMonth } from "../../core/control/budgets";
import {
  type DayUse,
  FORECAST_DAYS,
  forecastOf,
  leftForSync,
  type MonthUse,
  rateOf,
} from "../../core/control/budgets/budget-rule";
import type { Feed } from "../../core/sync/modes/live/feed-types";
import { dueInMs } from "../../core/sync/modes/live/read-feed";
import { liveCadence } from "../../core/sync/modes/live/rest";
import { type Cadence, type CadenceFacts, CallBucket, cadenceOf, sweepCallsOf } from "../../core/sync/pacing";
import { ACTIVE_FOR_MS, NOTIFICATION_BURST } from "../../core/sync/pacing/cadence";
import { LiveCache } from "../../core/sync/state";
import { type MonthPlan, simulateDay, simulateMonth } from "../support/budget-simulation";

const DAY_MS = 86_400_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const facts: fc.Arbitrary<CadenceFacts> = fc.record({
  ratePerSecond: fc.oneof(
    fc.constant(Infinity),
    fc.constant(0),
    fc.double({ min: 1e-6, max: 10, noNaN: true }),
  ),
  mode: fc.constantFrom("live" as const, "rapid" as const, "sweep" as const),
  notifications: fc.constantFrom("proven" as const, "expected" as const, "none" as const),
  isActive: fc.boolean(),
  quietMs: fc.double({ min: Number.NEGATIVE_INFINITY, noNaN: true }),
  sweepCalls: fc.integer({ min: 0, max: 5000 }),
  tables: fc.integer({ min: 0, max: 100 }),
  changesByItself: fc.boolean(),
  batchCalls: fc.double({ min: 1, max: 500, noNaN: true }),
});

/** Calls per second of a base that continues like this, with everything at its slowest. */
function callsPerSecond(of: CadenceFacts, cadence: Cadence): number {
  const each = (calls: number, everyMs: number) =>
    everyMs >= LONGEST_TIMER_MS ? 0 : (calls * 1000) / everyMs;
  const sweeps = each(of.sweepCalls, cadence.sweepEveryMs);
  const schema = cadence.schemaMs > 0 ? each(1, cadence.schemaMs) : 0;
  if (of.mode === "rapid") return sweeps + schema + each(of.tables, cadence.cycleMs);
  if (of.mode === "sweep") return sweeps + schema;
  const reads = Math.max(
    each(of.batchCalls!, cadence.pollMs),
    of.notifications !== "none" ? each(of.batchCalls!, cadence.notificationGapMs) : 0,
  );
  return sweeps + schema + reads + each(1, cadence.freshnessMs);
}

test("the requests of a mode never add up to more than the rate", () => {
  fc.assert(
    fc.property(facts, (of) => {
      const cadence = cadenceOf(of);
      for (const ms of Object.values(cadence)) expect(ms).toBeLessThanOrEqual(LONGEST_TIMER_MS);
      if (of.ratePerSecond < Infinity)
        expect(callsPerSecond(of, cadence)).toBeLessThanOrEqual(of.ratePerSecond);
    }),
  );
});

test("a smaller budget never makes anything more frequent", () => {
  fc.assert(
    fc.property(facts, fc.double({ min: 0, max: 1, noNaN: true }), (of, part) => {
      const [more, less] = [cadenceOf(of), cadenceOf({ ...of, ratePerSecond: of.ratePerSecond * part || 0 })];
      for (const name of Object.keys(more) as (keyof Cadence)[])
        expect(less[name]).toBeGreaterThanOrEqual(more[name]);
    }),
  );
});

test("without a cap, an active live base is polled each second, compared each minute, and swept at one call per second", () => {
  const of = { mode: "live", ratePerSecond: Infinity, notifications: "none", isActive: true } as const;
  expect(cadenceOf({ ...of, quietMs: 0, sweepCalls: 500, tables: 3, changesByItself: false })).toMatchObject({
    pollMs: 1000,
    freshnessMs: 60_000,
    schemaMs: 3600_000,
    sweepEveryMs: 1000,
    sweepCallMs: 1000,
  });
});

test.each(["proven", "expected"] as const)(
  "an idle live base whose notifications are %s is polled every 5 minutes, with at most 300 calls a day plus one sweep",
  (notifications) => {
    const of = {
      mode: "live",
      ratePerSecond: Infinity,
      notifications,
      isActive: false,
      quietMs: DAY_MS,
      changesByItself: false,
    } as const;
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 1, max: 60 }),
        (sweepCalls, tables) => {
          const cadence = cadenceOf({ ...of, sweepCalls, tables });
          expect(simulateDay(cadence, sweepCalls)).toBeLessThanOrEqual(300 + sweepCalls);
          expect(cadence.pollMs).toBeLessThan(5 * 60_000);
        },
      ),
    );
    expect(cadenceOf({ ...of, sweepCalls: 3000, tables: 9 }).sweepEveryMs).toBe(DAY_MS);
    const changing = cadenceOf({ ...of, sweepCalls: 3000, tables: 9, changesByItself: true });
    expect(changing.sweepEveryMs).toBe(45 * 60_000);
  },
);

test("an idle live base that is polled makes at most 0.2 calls a second besides its daily sweep", () => {
  const facts = [fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 60 })] as const;
  fc.assert(
    fc.property(...facts, fc.boolean(), (sweepCalls, tables, changesByItself) => {
      const of = { mode: "live", ratePerSecond: Infinity, notifications: "none", isActive: false } as const;
      const idle = cadenceOf({ ...of, quietMs: ACTIVE_FOR_MS, sweepCalls, tables, changesByItself });
      const each = [idle.pollMs, idle.freshnessMs, idle.schemaMs].map((ms) => 1000 / ms);
      expect(each.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(0.2);
      expect(idle.sweepEveryMs).toBe(changesByItself ? 45 * 60_000 : DAY_MS);
      expect(idle.sweepCallMs).toBe(1000);
    }),
  );
  expect(ACTIVE_FOR_MS).toBeLessThanOrEqual(5 * 60_000);
});

describe("the polls of a base", () => {
  afterEach(() => void vi.useRealTimers());

  /** The times of the polls of a base that has just begun, and a change at `changedAtMs`, in seconds. */
  function pollTimes(notifications: CadenceFacts["notifications"], forMs: number, changedAtMs?: number) {
    vi.useFakeTimers({ now: new Date("2026-11-29T12:00:00Z"), toFake: ["Date", "performance"] });
    const cache = new LiveCache();
    const begunAt = performance.now();
    const sizes = { sweepCalls: 298, tables: 3, changesByItself: false };
    const feed = { notifications } as Feed;
    const cadence = () =>
      liveCadence(
        { feed, cadence: (facts) => cadenceOf({ ...facts, ratePerSecond: Infinity }) },
        cache,
        sizes,
      );
    const times: number[] = [];
    for (let ms = 0; ms < forMs; ms = performance.now() - begunAt) {
      times.push(Math.round(ms / 1000));
      cache.readAt = performance.now();
      if (changedAtMs !== undefined && ms >= changedAtMs) cache.changedAt ??= new Date();
      vi.advanceTimersByTime(Math.ceil(dueInMs({ cache, cadence })));
    }
    return { times, cadence };
  }

  test("while notifications are expected come after 10 s, a minute, and every five minutes: at most five in ten minutes", () => {
    const { times, cadence } = pollTimes("expected", 3600_000);
    expect(times.filter((time) => time < 600)).toEqual([0, 10, 60, 358]);
    expect(times).toHaveLength(14);
    // Nobody has edited it: nothing asks for a full check.
    expect(cadence()).toMatchObject({ sweepEveryMs: DAY_MS, freshnessMs: 6 * 3600_000 });
  });

  test("whose notifications have arrived come every five minutes, from the first one on", () => {
    expect(pollTimes("proven", 600_000).times).toEqual([0, 298, 596]);
  });

  test("without notifications come each second after a change, and ever less often up to every 6 s", () => {
    const { times } = pollTimes("none", 7200_000, 3600_000);
    const gaps = times.slice(1).map((time, index) => ({ at: times[index]!, gap: time - times[index]! }));
    const between = (from: number, to: number) =>
      gaps.flatMap(({ at, gap }) => (at >= from && at < to ? gap : []));
    expect(new Set(between(0, 49))).toEqual(new Set([1]));
    expect(new Set(between(310, 3590))).toEqual(new Set([6]));
    expect(new Set(between(3606, 3650))).toEqual(new Set([1]));
    expect(new Set(between(3920, 7190))).toEqual(new Set([6]));
    // A change is found within 2 % of the time since the one before it, or 1 s.
    for (const { at, gap } of gaps) expect(gap).toBeLessThanOrEqual(Math.max(1, at / 50) + 1);
  });

  test("a change makes it active: full checks follow each other for five minutes", () => {
    const { cadence } = pollTimes("none", 600_000, 590_000);
    expect(cadence().sweepEveryMs).toBe(1000);
    vi.advanceTimersByTime(ACTIVE_FOR_MS);
    expect(cadence().sweepEveryMs).toBe(DAY_MS);
  });
});

test("unused reads are saved for notifications in quick succession, and no further", () => {
  const bucket = new CallBucket();
  const gapMs = 60_000;
  for (let ping = 0; ping < NOTIFICATION_BURST; ping++) {
    expect(bucket.waitMs(0, gapMs)).toBe(0);
    bucket.take(0, gapMs);
  }
  expect(bucket.waitMs(0, gapMs)).toBe(gapMs);
  expect(bucket.waitMs(gapMs, gapMs)).toBe(0);
  bucket.take(gapMs, gapMs);
  bucket.waitMs(1e9, gapMs);
  for (let ping = 0; ping < NOTIFICATION_BURST; ping++) bucket.take(1e9, gapMs);
  expect(bucket.waitMs(1e9, gapMs)).toBe(gapMs);
});

test("a sweep costs one call per hundred records, and one for an empty table", () => {
  expect(sweepCallsOf([{ records: 0 }, { records: 100 }, { records: 101 }])).toBe(4);
});

const months: fc.Arbitrary<MonthPlan> = fc.record({
  month: fc.constantFrom("2026-02", "2026-10", "2026-11"),
  callsPerMonth: fc.constantFrom(1000, 100_000, 1_000_000),
  reservePart: fc.constantFrom(0, 0.2, 0.5),
  bases: fc.array(
    fc.record({
      mode: fc.constantFrom("live" as const, "rapid" as const, "sweep" as const),
      notifications: fc.constantFrom("proven" as const, "expected" as const, "none" as const),
      tables: fc.integer({ min: 1, max: 20 }),
      sweepCalls: fc.integer({ min: 20, max: 3000 }),
      /** Batches with changes, and the cost of each. */
      activePart: fc.double({ min: 0, max: 1, noNaN: true }),
      batchCalls: fc.integer({ min: 1, max: 60 }),
      /** Bulk edits and rebuilds, which are never delayed: how many per month, and with how many calls. */
      bursts: fc.integer({ min: 0, max: 40 }),
      burstCalls: fc.integer({ min: 1, max: 3000 }),
    }),
    { minLength: 1, maxLength: 5 },
  ),
  /** Of the reserve; beyond 1 clients use more than their reserve. */
  clientPart: fc.double({ min: 0, max: 3, noNaN: true }),
  seed: fc.integer(),
});

test("under any load, a month ends within the cap, and the reserve is left to clients", () => {
  fc.assert(
    fc.property(months, (plan) => {
      const { sync, client, refusedClients, leastLeftForClients } = simulateMonth(plan);
      const reserve = Math.floor(plan.callsPerMonth * plan.reservePart);
      // Clients that want more than their reserve get it: nothing refuses them.
      expect(refusedClients).toBe(0);
      expect(sync + Math.max(client, reserve)).toBeLessThanOrEqual(
        plan.callsPerMonth + Math.max(0, client - reserve),
      );
      expect(leastLeftForClients).toBeGreaterThanOrEqual(0);
      if (client <= reserve) expect(sync + client).toBeLessThanOrEqual(plan.callsPerMonth);
    }),
    { numRuns: 20 * Number(process.env.FUZZ_RUNS ?? 1) },
  );
}, 60_000);

test("a polled base stays within a Team plan, and is synced until the last hours of the month", () => {
  for (const sweepCalls of [200, 250, 300, 350, 400]) {
    const base = {
      mode: "live" as const,
      notifications: "none" as const,
      tables: 10,
      sweepCalls,
      activePart: 0.3,
    };
    const { sync, client, latestMs, spentMs } = simulateMonth({
      month: "2026-10",
      callsPerMonth: 100_000,
      reservePart: 0.2,
      bases: [{ ...base, batchCalls: 3, bursts: 0, burstCalls: 1 }],
      clientPart: 1,
      seed: 1,
    });
    expect(sync + client).toBeLessThan(100_000);
    expect(sync).toBeGreaterThan(40_000);
    // The last sweep may take the calls that are left.
    expect(spentMs).toBeLessThan(2 * 3600_000);
    expect(latestMs).toBeGreaterThan(nextMonth(new Date("2026-10-15")).getTime() - 2 * 3600_000);
  }
});

const cap = { callsPerMonth: 100_000, reserve: 20_000 };
const NOTHING = { sync: 0, client: 0 };
/** Whole days before `until`, all with the same calls. */
const daysUntil = (until: string, use: MonthUse, count = FORECAST_DAYS): DayUse[] =>
  Array.from({ length: count }, (_, index) => ({
    at: new Date(Date.parse(until) - (count - index) * DAY_MS),
    ...use,
  }));

test("the forecast assumes days like those of the last week, and sync's share stays within the budget", () => {
  const now = new Date("2026-11-16T00:00:00Z");
  const forecast = (of: typeof cap, used: MonthUse, days: DayUse[], today = NOTHING) =>
    forecastOf(of, used, days, today, now);
  const week = (sync: number, client: number) => daysUntil("2026-11-16", { sync, client });
  expect(forecast(cap, { sync: 10_000, client: 5000 }, week(1000, 500))).toEqual({
    calls: 37_500,
    nextDay: 1500,
    at: new Date("2026-12-01T00:00:00Z"),
    endsInside: true,
    missing: null,
  });
  // Sync gives way to clients; only clients may exceed the cap.
  expect(forecast(cap, { sync: 60_000, client: 30_000 }, week(4000, 2000))).toMatchObject({
    calls: 120_000,
    endsInside: false,
  });
  expect(forecast(cap, { sync: 70_000, client: 0 }, week(5000, 0))).toMatchObject({
    calls: 79_000,
    endsInside: true,
  });
  const noCap = { callsPerMonth: null, reserve: 0 };
  expect(forecastOf(noCap, { sync: 4e6, client: 0 }, week(2e5, 0), NOTHING, now)).toMatchObject({
    calls: 7e6,
    endsInside: true,
  });
  expect(leftForSync(noCap, { sync: 4e6, client: 0 })).toBe(Infinity);
});

test("without a week of whole days, or with days that differ, there is no forecast; a cap that is exceeded is known all the same", () => {
  const now = new Date("2026-11-16T00:00:00Z");
  const use = { sync: 1000, client: 500 };
  const short = daysUntil("2026-11-16", use, FORECAST_DAYS - 1);
  const none = { calls: null, nextDay: null, endsInside: null };
  expect(forecastOf(cap, use, short, NOTHING, now)).toMatchObject({ ...none, missing: "history" });
  const [first, ...others] = daysUntil("2026-11-16", use);
  const uneven = [{ ...first!, sync: 3000 }, ...others];
  expect(forecastOf(cap, use, uneven, NOTHING, now)).toMatchObject({ ...none, missing: "regularity" });
  // Today is already beyond what days were like.
  const later = new Date("2026-11-16T08:00:00Z");
  const even = [first!, ...others];
  expect(forecastOf(cap, use, even, { sync: 1000, client: 100 }, later).calls).toBeGreaterThan(0);
  expect(forecastOf(cap, use, even, { sync: 9000, client: 0 }, later).missing).toBe("regularity");
  const over = { sync: 0, client: 100_001 };
  expect(forecastOf(cap, over, [], NOTHING, now)).toMatchObject({ ...none, endsInside: false });
});

/** The calls of a day by pattern; `chance` gives numbers from 0 to 1. */
const patterns: Record<string, (weekday: boolean, chance: () => number) => number> = {
  idle: (_, chance) => 290 + 10 * chance(),
  polling: (_, chance) => 86_000 * (0.95 + 0.1 * chance()),
  busy: (weekday, chance) => (weekday ? 40_000 : 35_000) * (0.93 + 0.14 * chance()),
  weekend: (weekday, chance) => (weekday ? 20_000 : 500) * (0.95 + 0.1 * chance()),
  bursts: (_, chance) => 300 + Math.floor(7 * chance()) * 2000 * (0.5 + chance()),
};

// One seed: by chance, seven random days may be alike, and the eighth not.
test("in simulated months, a forecast is never more than 25 % off the next whole day, and exists where days are alike", () => {
  const random = new Random(7);
  const chance = () => random.next();
  for (const [name, pattern] of Object.entries(patterns)) {
    let forecasts = 0;
    for (let run = 0; run < 5; run++) {
      const days = Array.from({ length: 90 }, (_, index): DayUse => {
        const at = new Date(Date.UTC(2026, 8, 1) + index * DAY_MS);
        const calls = pattern(at.getUTCDay() % 6 !== 0, chance);
        const clients = name === "polling" ? 0 : Math.round(calls * 0.2);
        return { at, sync: Math.round(calls) - clients, client: clients };
      });
      for (let index = 0; index < days.length - 1; index++) {
        const day = days[index]!;
        // Some time of the day, with the calls until then.
        const part = chance();
        const now = new Date(day.at.getTime() + part * DAY_MS);
        const today = { sync: Math.round(part * day.sync), client: Math.round(part * day.client) };
        const noCap = { callsPerMonth: null, reserve: 0 };
        const { nextDay } = forecastOf(noCap, NOTHING, days.slice(0, index), today, now);
        if (index < FORECAST_DAYS) expect(nextDay).toBeNull();
        if (nextDay === null) continue;
        forecasts++;
        const actual = days[index + 1]!.sync + days[index + 1]!.client;
        expect(Math.abs(nextDay - actual), `${name}, ${day.at.toISOString()}`).toBeLessThanOrEqual(
          actual / 4,
        );
      }
    }
    if (name !== "bursts") expect(forecasts, name).toBeGreaterThan(5 * 80 * 0.9);
  }
});

test("the rest is spread evenly over the bases and the rest of the month", () => {
  const now = new Date("2026-11-30T00:00:00Z");
  expect(rateOf(8640, now, 1)).toBeCloseTo(0.1);
  expect(rateOf(8640, now, 4)).toBeCloseTo(0.025);
  expect(rateOf(0, now, 4)).toBe(0);
});
