/** How late a process is for its reservations, measured continuously. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MOST_DELAY_MS, SPARE_MS } from "../../core/limiter/backend";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";

const ASKED_BEFORE_MS = 60;

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
        for (let call = 0; call < 3000; call++) {
          const lateMs = mostMs * parts.next().value!;
          if (call >= 1500 && lateMs > delay.ms + SPARE_MS) missed++;
          delay.learn(lateMs);
          expect(delay.ms).toBeLessThanOrEqual(MOST_DELAY_MS);
        }
        expect(missed / 1500).toBeLessThanOrEqual(0.03);
      },
    ),
    { numRuns: 30 },
  );
});

test("one very late call is forgotten", () => {
  const delay = createSchedulingDelay();
  delay.learn(5000);
  expect(delay.ms).toBeGreaterThan(0);
  for (let call = 0; call < 50; call++) delay.learn(1);
  expect(delay.ms).toBe(0);
});

test("a process that stands still now and then misses few reservations, however many requests it sends", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 20, max: 3000 }),
      fc.integer({ min: 10, max: 80 }),
      fc.integer({ min: 100, max: 1000 }),
      (perSecond, stallMs, everyMs) => {
        let nowMs = 0;
        const delay = createSchedulingDelay({ now: () => nowMs });
        let [calls, missed] = [0, 0];
        // A reservation is asked for some time before it begins, and is valid for what was known then.
        const known: number[] = [];
        const askedCallsBefore = Math.ceil((ASKED_BEFORE_MS * perSecond) / 1000);
        for (let dueMs = 0; dueMs < 60_000; dueMs += 1000 / perSecond) {
          const intoStallMs = dueMs % everyMs;
          const lateMs = intoStallMs < stallMs ? stallMs - intoStallMs : 1;
          nowMs = dueMs + lateMs;
          const validMs = known[known.length - askedCallsBefore] ?? 0;
          if (dueMs >= 20_000) {
            calls++;
            if (lateMs > validMs + SPARE_MS) missed++;
          }
          delay.learn(lateMs);
          known.push(delay.ms);
        }
        expect(missed / calls).toBeLessThanOrEqual(0.035);
      },
    ),
    { numRuns: 50 },
  );
});
