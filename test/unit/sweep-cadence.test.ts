import fc from "fast-check";
import { expect, test } from "vitest";
import { nextSweepAt } from "../../core/sync/lease/sweep-cadence";

/** performance.now() at the start of a sweep. */
const times = fc.double({ min: 0, max: 1e9, noNaN: true });

test("a base is swept about once a second, wherever its first sweep began", () => {
  fc.assert(
    fc.property(times, (startedAt) => {
      const restMs = nextSweepAt(startedAt) - startedAt;
      expect(restMs).toBeGreaterThanOrEqual(875);
      expect(restMs).toBeLessThanOrEqual(1125);
    }),
  );
});

test("bases whose timers fire late keep an interval of a second, and begin together", () => {
  const late = fc.double({ min: 0, max: 100, noNaN: true });
  fc.assert(
    fc.property(times, fc.array(fc.tuple(late, late), { minLength: 1, maxLength: 50 }), (first, delays) => {
      let [one, other] = [nextSweepAt(first), nextSweepAt(first)];
      for (const [index, [delay, otherDelay]] of delays.entries()) {
        one = nextSweepAt(one + delay);
        other = nextSweepAt(other + otherDelay);
        expect(one).toBe(other);
        expect(one - nextSweepAt(first)).toBe(1000 * (index + 1));
      }
    }),
  );
});
