import { expect, test } from "vitest";
import { ago, counted, formatElapsed, inDigits, inUtc } from "../../views/format";

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
    [60_000, "1 min 0 s"],
    [200_000, "3 min 20 s"],
    [7_500_000, "2 h 5 min"],
    [48 * 3_600_000, "2 d 0 h"],
  ];
  for (const [ms, words] of cases) expect([ms, formatElapsed(ms)]).toEqual([ms, words]);
  // Rounding never produces a minute of 60 s, or ten of 10.0 s.
  for (let ms = 0; ms < 70_000; ms += 7) expect(formatElapsed(ms)).not.toMatch(/^(1\.00|10\.0|60) s$/);
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
