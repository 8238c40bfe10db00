/** Call budgets on a simulated clock: any load through any month, and the pace of an idle base. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { nextMonth } from "../../core/control/budgets";
import { forecastOf, leftForSync, rateOf } from "../../core/control/budgets/budget-rule";
import { type Cadence, type CadenceFacts, CallBucket, cadenceOf, sweepCallsOf } from "../../core/sync/pacing";
import { NOTIFICATION_BURST } from "../../core/sync/pacing/cadence";
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
  hasNotifications: fc.boolean(),
  isActive: fc.boolean(),
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
    of.hasNotifications ? each(of.batchCalls!, cadence.notificationGapMs) : 0,
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
  const of = { mode: "live", ratePerSecond: Infinity, hasNotifications: false, isActive: true } as const;
  expect(cadenceOf({ ...of, sweepCalls: 500, tables: 3, changesByItself: false })).toMatchObject({
    pollMs: 1000,
    freshnessMs: 60_000,
    schemaMs: 3600_000,
    sweepEveryMs: 1000,
    sweepCallMs: 1000,
  });
});

test("an idle live base with notifications is polled every 5 minutes, with at most 300 calls a day plus one sweep", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3000 }), fc.integer({ min: 1, max: 60 }), (sweepCalls, tables) => {
      const of = { mode: "live", ratePerSecond: Infinity, hasNotifications: true, isActive: false } as const;
      const cadence = cadenceOf({ ...of, sweepCalls, tables, changesByItself: false });
      const calls = simulateDay(cadence, sweepCalls);
      expect(calls).toBeLessThanOrEqual(300 + sweepCalls);
      expect(cadence.pollMs).toBeLessThan(5 * 60_000);
    }),
  );
  const of = { mode: "live", ratePerSecond: Infinity, hasNotifications: true, isActive: false } as const;
  const large = cadenceOf({ ...of, sweepCalls: 3000, tables: 9, changesByItself: false });
  expect(large.sweepEveryMs).toBe(DAY_MS);
  const changing = cadenceOf({ ...of, sweepCalls: 3000, tables: 9, changesByItself: true });
  expect(changing.sweepEveryMs).toBe(45 * 60_000);
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
      hasNotifications: fc.boolean(),
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
    { numRuns: 60 },
  );
}, 60_000);

test("a polled base stays within a Team plan until the end of the month", () => {
  const base = {
    mode: "live" as const,
    hasNotifications: false,
    tables: 10,
    sweepCalls: 300,
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
  expect(spentMs).toBeLessThan(60_000);
  expect(latestMs).toBeGreaterThan(nextMonth(new Date("2026-10-15")).getTime() - 10 * 60_000);
});

test("the forecast assumes that usage continues as before, and sync's share stays within the budget", () => {
  const cap = { callsPerMonth: 100_000, reserve: 20_000 };
  const monthStart = new Date("2026-11-01T00:00:00Z");
  const now = new Date("2026-11-16T00:00:00Z");
  expect(forecastOf(cap, { sync: 10_000, client: 5000 }, monthStart, now)).toEqual({
    calls: 30_000,
    at: new Date("2026-12-01T00:00:00Z"),
    endsInside: true,
  });
  // Sync gives way to clients; only clients may exceed the cap.
  expect(forecastOf(cap, { sync: 60_000, client: 30_000 }, monthStart, now)).toMatchObject({
    calls: 120_000,
    endsInside: false,
  });
  expect(forecastOf(cap, { sync: 70_000, client: 0 }, monthStart, now)).toMatchObject({
    calls: 79_000,
    endsInside: true,
  });
  const noCap = { callsPerMonth: null, reserve: 0 };
  expect(forecastOf(noCap, { sync: 4e6, client: 0 }, monthStart, now)).toMatchObject({
    calls: 8e6,
    endsInside: true,
  });
  expect(leftForSync(noCap, { sync: 4e6, client: 0 })).toBe(Infinity);
});

test("the rest is spread evenly over the bases and the rest of the month", () => {
  const now = new Date("2026-11-30T00:00:00Z");
  expect(rateOf(8640, now, 1)).toBeCloseTo(0.1);
  expect(rateOf(8640, now, 4)).toBeCloseTo(0.025);
  expect(rateOf(0, now, 4)).toBe(0);
});
