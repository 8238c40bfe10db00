/** How late a process is for its reservations, measured continuously. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MOST_DELAY_MS, SPARE_MS } from "../../core/limiter/backend";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";

test("a process that is on time for what the window allows needs no margin", () => {
  const delay = createSchedulingDelay();
  for (let call = 0; call < 1000; call++) delay.learn(call % (SPARE_MS + 1));
  expect(delay.ms).toBe(0);
});

test("with any delay, few calls are later than their reservation, which is limited", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: MOST_DELAY_MS }),
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, noDefaultInfinity: true })),
      (mostMs, parts) => {
        const delay = createSchedulingDelay();
        let missed = 0;
        for (let call = 0; call < 2000; call++) {
          const lateMs = mostMs * parts.next().value!;
          if (call >= 500 && lateMs > delay.ms + SPARE_MS) missed++;
          delay.learn(lateMs);
          expect(delay.ms).toBeLessThanOrEqual(MOST_DELAY_MS);
        }
        expect(missed / 1500).toBeLessThanOrEqual(0.06);
      },
    ),
    { numRuns: 30 },
  );
});

test("one very late call is forgotten", () => {
  const delay = createSchedulingDelay();
  delay.learn(5000);
  expect(delay.ms).toBeGreaterThan(0);
  for (let call = 0; call < 20; call++) delay.learn(1);
  expect(delay.ms).toBe(0);
});
