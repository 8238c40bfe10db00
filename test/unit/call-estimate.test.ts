/** What a plan costs, as the onboarding shows it before a base is connected. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultReserve, estimateCalls, nextMonth } from "../../core/control/budgets";
import { leftForSync } from "../../core/control/budgets/budget-rule";

const DAY_MS = 86_400_000;
const NOW = new Date("2026-11-10T00:00:00Z");

const base = {
  tables: fc.integer({ min: 1, max: 300 }),
  sweepCalls: fc.integer({ min: 1, max: 5000 }),
  isLive: fc.boolean(),
  hasNotifications: fc.boolean(),
  otherBases: fc.integer({ min: 0, max: 20 }),
  share: fc.constantFrom(3, 5),
  schemaPollMs: fc.constant(60_000),
};

test("under a cap, a base that is busy every day leaves the month's calls to last, for any size and budget", () => {
  const input = fc.record({
    ...base,
    callsPerMonth: fc.constantFrom(1000, 50_000, 100_000),
    sync: fc.integer({ min: 0, max: 120_000 }),
    now: fc.constantFrom(NOW, new Date("2026-11-30T23:00:00Z")),
  });
  fc.assert(
    fc.property(input, ({ callsPerMonth, sync, now, ...facts }) => {
      const cap = { callsPerMonth, reserve: defaultReserve(callsPerMonth) };
      const used = { sync, client: 0 };
      const cost = estimateCalls({ ...facts, cap, used, now });
      const left = leftForSync(cap, used);
      expect(cost.isFirstSyncWithin).toBe(left >= cost.firstSync);
      const days = Math.max(1, (nextMonth(now).getTime() - now.getTime()) / DAY_MS);
      for (const perDay of [cost.quietPerDay, cost.busyPerDay]) {
        expect(perDay * days * (facts.otherBases + 1)).toBeLessThanOrEqual(
          Math.max(0, left - cost.firstSync),
        );
      }
    }),
  );
});

test("without a cap, a base never makes more calls than sync's share of the rate limit, and a full check ends", () => {
  fc.assert(
    fc.property(fc.record(base), (facts) => {
      const cap = { callsPerMonth: null, reserve: 0 };
      const cost = estimateCalls({ ...facts, cap, used: { sync: 0, client: 0 }, now: NOW });
      expect(cost.quietPerDay).toBeLessThanOrEqual(cost.busyPerDay);
      expect(cost.busyPerDay).toBeLessThanOrEqual((facts.share * DAY_MS) / 1000);
      expect(cost.fullCheckMs).toBeGreaterThanOrEqual((facts.sweepCalls / facts.share) * 1000 - 1);
    }),
  );
});

test("a live base at rest costs some 300 calls a day, and the same base without the scope as many as its share", () => {
  const facts = { tables: 5, sweepCalls: 20, otherBases: 0, share: 3, schemaPollMs: 60_000, now: NOW };
  const cap = { callsPerMonth: null, reserve: 0 };
  const used = { sync: 0, client: 0 };
  const live = estimateCalls({ ...facts, cap, used, isLive: true, hasNotifications: true });
  expect(live.quietPerDay).toBeGreaterThan(290);
  expect(live.quietPerDay).toBeLessThan(330);
  const swept = estimateCalls({ ...facts, cap, used, isLive: false, hasNotifications: true });
  expect(swept.quietPerDay).toBe(3 * 86_400);
});
