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

test("a flood of keys uses bounded memory, and refuses no key, old or new", () => {
  const window = new RateWindow(2, 1000);
  expect(window.take("mine", 0)).toBe(0);
  const refused = Array.from({ length: 120_000 }, (_, index) => window.take(`key ${index}`, 1)).filter(
    Boolean,
  );
  expect(refused).toEqual([]);
  expect([
    window.take("mine", 2),
    window.take("new", 2),
    window.take("new", 2),
    window.take("new", 2),
  ]).toEqual([0, 0, 0, 998]);
});

test("a key's wait can be read without counting", () => {
  const window = new RateWindow(1, 1000);
  expect([window.waitMs("a", 0), window.waitMs("a", 0), window.take("a", 0)]).toEqual([0, 0, 0]);
  expect([window.waitMs("a", 1), window.waitMs("b", 1), window.waitMs("a", 1000)]).toEqual([999, 0, 0]);
});
