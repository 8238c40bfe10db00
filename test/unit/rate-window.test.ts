import fc from "fast-check";
import { expect, test } from "vitest";
import { RateWindow } from "../../core/http";

test("each key has its limit within a window, whatever the others do", () => {
  const calls = fc.array(fc.record({ key: fc.constantFrom("a", "b", "c"), afterMs: fc.nat(400) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 5 }), (all, most) => {
      const window = new RateWindow(most, 1000);
      let now = 0;
      let endsAt = 0;
      let counts: Record<string, number> = {};
      for (const { key, afterMs } of all) {
        now += afterMs;
        if (now >= endsAt) [counts, endsAt] = [{}, now + 1000];
        counts[key] = (counts[key] ?? 0) + 1;
        const waitMs = window.take(key, now);
        expect(waitMs).toBe(counts[key] <= most ? 0 : endsAt - now);
      }
    }),
  );
});

test("a flood of keys uses bounded memory, and blocks no existing key", () => {
  const window = new RateWindow(2, 1000);
  expect(window.take("mine", 0)).toBe(0);
  let refused = 0;
  for (let index = 0; index < 60_000; index++) if (window.take(`key ${index}`, 1) > 0) refused += 1;
  expect(refused).toBeGreaterThan(9_000);
  expect(window.take("mine", 2)).toBe(0);
  expect(window.take("late", 1001)).toBe(0);
});
