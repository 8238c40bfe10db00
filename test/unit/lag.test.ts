/** L1: the age of the data over time, from syncs and from periods without any. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Period } from "../../core/control/history";
import { type LagSample, lagOver } from "../../core/control/history/lag";

const MINUTE_MS = 60_000;
const COUNT = 60;
const now = new Date("2026-11-20T12:00:30Z");
const buckets = Array.from(
  { length: COUNT },
  (_, index) => new Date(Date.parse("2026-11-20T12:00:00Z") - (COUNT - 1 - index) * MINUTE_MS),
);
const at = (minutesAgo: number) => new Date(now.getTime() - minutesAgo * MINUTE_MS);
const over = (samples: LagSample[], periods: Period[]) => lagOver(buckets, MINUTE_MS, samples, periods, now);

const sample = (minutesAgo: number, lagMs: number, changed = 0): LagSample => ({
  from: at(minutesAgo),
  to: at(minutesAgo),
  syncs: 1,
  lagMs,
  maxLagMs: lagMs,
  changed,
});
const outage = (from: number, to: number | null, asOf = from): Period => ({
  kind: "outage",
  label: "Failing",
  beganAt: at(from),
  endedAt: to === null ? null : at(to),
  asOf: at(asOf),
});

test("an outage of eleven minutes is drawn as one, not as a sync of 21 seconds", () => {
  const found = over([sample(20, 1000), sample(9, 21_000)], [outage(20, 9)]);
  expect(Math.max(...found.map(({ maxMs }) => maxMs ?? 0))).toBeGreaterThan(9 * MINUTE_MS);
  const during = found.filter(({ at: begin }) => begin > at(19) && begin < at(10));
  for (const [index, { maxMs }] of during.entries()) {
    if (index > 0) expect(maxMs).toBeGreaterThan(during[index - 1]!.maxMs!);
  }
});

test("a live base without changes shows nothing; one that fails ages until now", () => {
  expect(over([], []).every(({ p50Ms, maxMs }) => p50Ms === null && maxMs === null)).toBe(true);
  expect(over([], [outage(12, null, 15)]).at(-1)!.maxMs).toBe(15 * MINUTE_MS);
});

test("a bucket shows the median of its syncs, each of a row counted, and the longest of all", () => {
  const bucketOf = (samples: LagSample[]) => over(samples, []).find(({ p50Ms }) => p50Ms !== null);
  expect(bucketOf([sample(5, 9000), sample(5, 1000), sample(5, 2000)])).toMatchObject({
    p50Ms: 2000,
    maxMs: 9000,
  });
  const many = { ...sample(5, 1000), syncs: 3, maxLagMs: 4000 };
  expect(bucketOf([many, sample(5, 2000), sample(5, 3000)])).toMatchObject({ p50Ms: 1000, maxMs: 4000 });
});

test("syncs that share a row count in every bucket that they span, and their changes once", () => {
  const found = over(
    [{ ...sample(20, 1000, 3), to: at(17) }, sample(90, 7), { ...sample(70, 500), to: at(59) }],
    [],
  );
  const minutesAgo = found.flatMap(({ at: begin, p50Ms }) =>
    p50Ms === null ? [] : [Math.floor((now.getTime() - begin.getTime()) / MINUTE_MS)],
  );
  expect(minutesAgo).toEqual([59, 20, 19, 18, 17]);
  expect(found.map(({ changed }) => changed).filter(Boolean)).toEqual([3]);
});

test("changed rows are counted once, and no age exceeds the time since the oldest cause", () => {
  const minutes = fc.integer({ min: 0, max: 58 });
  const samples = fc.array(fc.tuple(minutes, fc.nat(5000), fc.nat(9)), { maxLength: 30 });
  const periods = fc.array(fc.tuple(minutes, minutes), { maxLength: 4 });
  fc.assert(
    fc.property(samples, periods, (given, spans) => {
      const runs = given
        .map(([ago, lag, changed]) => sample(ago, lag, changed))
        .toSorted((a, b) => +a.from - +b.from);
      const causes = spans
        .map(([one, other]) => outage(Math.max(one, other), Math.min(one, other)))
        .toSorted((a, b) => +a.beganAt - +b.beganAt);
      const found = over(runs, causes);
      expect(found).toHaveLength(COUNT);
      expect(found.reduce((sum, { changed }) => sum + changed, 0)).toBe(
        given.reduce((sum, [, , changed]) => sum + changed, 0),
      );
      for (const { p50Ms, maxMs } of found) {
        expect(p50Ms === null).toBe(maxMs === null);
        if (p50Ms === null) continue;
        expect(p50Ms).toBeGreaterThanOrEqual(0);
        expect(p50Ms).toBeLessThanOrEqual(maxMs!);
        expect(maxMs).toBeLessThanOrEqual(Math.max(60 * MINUTE_MS, 5000));
      }
    }),
  );
});
