import { expect, test } from "vitest";
import { ArrivalCheck } from "../chaos/harness/arrivals";
import { Kept } from "../chaos/harness/kept";

test("the proxy reports what it delayed, by connection and by time, for counting from the time of sending", () => {
  const kept = new Kept();
  kept.passed(1, 50, 0);
  kept.begin(100);
  kept.passed(1, 3100, 3000);
  kept.passed(2, 3100, 2500);
  kept.end(3100);
  kept.passed(1, 3400, 250);
  expect(kept.keptMs(1, 90)).toBe(0);
  expect(kept.keptMs(1, 3140)).toBe(3000);
  expect(kept.keptMs(2, 3140)).toBe(2500);
  // Sent after the connection was repaired.
  expect(kept.keptMs(1, 3440)).toBe(0);
  expect(kept.keptMs(3, 3440)).toBeUndefined();
});

test("I4: a request that is logged late is checked among those of its time, once", () => {
  const check = new ArrivalCheck();
  const at = (...times: number[]) => times.map((at) => ({ at, what: "GET" }));
  check.add("app", at(0, 100, 200, 300, 400));
  check.add("app", at(5000));
  expect(check.violations).toEqual([]);
  check.add("app", [{ at: 450, what: "GET", isKept: true }]);
  expect(check.violations).toHaveLength(1);
  check.add("app", at(5100));
  expect(check.violations).toHaveLength(1);
  expect(check.most).toBe(6);
});

test("I4: six requests are too many only if they are even with the source's own standstill", () => {
  const requests = [0, 100, 200, 300, 400, 980].map((at) => ({ at, what: "GET" }));
  const stall = { from: -30, to: -1, ms: 29, isOwn: true };
  const check = (stalls: (typeof stall)[]) => {
    const one = new ArrivalCheck();
    one.add("app", requests, stalls);
    return [one.violations.length, one.uncertain.length];
  };
  expect(check([stall])).toEqual([0, 1]);
  // Not long enough, over before, during the others only, or another process's.
  expect(check([{ ...stall, from: -15 }])).toEqual([1, 0]);
  expect(check([{ ...stall, to: -20 }])).toEqual([1, 0]);
  expect(check([{ ...stall, from: 90, to: 150 }])).toEqual([1, 0]);
  expect(check([{ ...stall, isOwn: false }])).toEqual([1, 0]);
});
