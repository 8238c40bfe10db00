import fc from "fast-check";
import { expect, test } from "vitest";
import { counted, formatDuration, inDigits } from "../../core/format";
import { ago, inUtc } from "../../views/format";

test("a duration has a natural precision", () => {
  const cases: [number, string][] = [
    [-5, "0 ms"],
    [0, "0 ms"],
    [42, "42 ms"],
    [423, "0.42 s"],
    [1000, "1.0 s"],
    [9949, "9.9 s"],
    [10_000, "10 s"],
    [59_499, "59 s"],
    [60_000, "1 min"],
    [200_000, "3 min 20 s"],
    [7_500_000, "2 h 5 min"],
    [48 * 3_600_000, "2 d"],
  ];
  for (const [ms, words] of cases) expect([ms, formatDuration(ms)]).toEqual([ms, words]);
});

const UNITS = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;

test("no part of a duration reaches its next unit, and the text is at most one step below the duration", () => {
  const durations = fc.oneof(
    fc.nat({ max: 90_000 }),
    fc.nat({ max: 400 * UNITS.d }),
    // Just below and above whole minutes, hours and days.
    fc
      .tuple(
        fc.constantFrom(UNITS.s, UNITS.min, UNITS.h, UNITS.d),
        fc.nat({ max: 70 }),
        fc.integer({ min: -9, max: 9 }),
      )
      .map(([unit, count, ms]) => Math.max(0, unit * count + ms)),
    fc.double({ min: 0, max: 4e9, noNaN: true }),
  );
  fc.assert(
    fc.property(durations, (ms) => {
      const parts = formatDuration(ms).match(/[\d.]+ (ms|s|min|h|d)/g)!;
      const read = parts.map((part) => part.split(" ") as [string, keyof typeof UNITS]);
      const limits = {
        ms: 100,
        s: 60,
        min: 60,
        h: read.length > 1 && read[0]![1] === "d" ? 24 : 48,
        d: Infinity,
      };
      for (const [count, unit] of read) expect(Number(count)).toBeLessThan(limits[unit]);
      const [last, lastUnit] = read.at(-1)!;
      const step = UNITS[lastUnit] / 10 ** (last.split(".")[1]?.length ?? 0);
      const shown = read.reduce((sum, [count, unit]) => sum + Number(count) * UNITS[unit], 0);
      expect(ms - shown).toBeGreaterThan(-1e-6);
      expect(ms - shown).toBeLessThan(step + 1e-6);
    }),
    { numRuns: 2000 },
  );
});

test("the age of something has one unit; the future is now", () => {
  const now = new Date("2026-11-20T12:00:00Z");
  const told = (ms: number) => ago(new Date(now.getTime() - ms), now);
  expect([-9000, 0, 1400, 12_000, 61_000, 7_200_000, 200_000_000].map(told)).toEqual([
    "now",
    "now",
    "now",
    "12 s ago",
    "1 min ago",
    "2 h ago",
    "2 d ago",
  ]);
});

test("numbers have thousands separators, times are UTC", () => {
  expect([0, 999, 1000, 1_234_567].map(inDigits)).toEqual(["0", "999", "1,000", "1,234,567"]);
  expect([counted(1, "table"), counted(2, "table")]).toEqual(["1 table", "2 tables"]);
  expect(inUtc(new Date("2026-01-02T03:04:05.678Z"))).toBe("2026-01-02 03:04:05 UTC");
});
