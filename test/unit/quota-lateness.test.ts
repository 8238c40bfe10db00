/** How long after its time a place should be good: what a process is late by, found as it goes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MOST_LATE_MS, SPARE_MS } from "../../core/quota/book";
import { createLateness } from "../../core/quota/lateness";

test("a process that is in time for what the window leaves room for wants no span", () => {
  const lateness = createLateness();
  for (let call = 0; call < 1000; call++) lateness.learn(call % (SPARE_MS + 1));
  expect(lateness.ms).toBe(0);
});

test("whatever it is late by, few calls are later than their span, which is no longer than it may be", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: MOST_LATE_MS }),
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, noDefaultInfinity: true })),
      (mostMs, parts) => {
        const lateness = createLateness();
        let missed = 0;
        for (let call = 0; call < 2000; call++) {
          const lateMs = mostMs * parts.next().value!;
          if (call >= 500 && lateMs > lateness.ms + SPARE_MS) missed++;
          lateness.learn(lateMs);
          expect(lateness.ms).toBeLessThanOrEqual(MOST_LATE_MS);
        }
        expect(missed / 1500).toBeLessThanOrEqual(0.06);
      },
    ),
    { numRuns: 30 },
  );
});

test("one call that was very late is forgotten", () => {
  const lateness = createLateness();
  lateness.learn(5000);
  expect(lateness.ms).toBeGreaterThan(0);
  for (let call = 0; call < 20; call++) lateness.learn(1);
  expect(lateness.ms).toBe(0);
});
