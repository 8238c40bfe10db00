import fc from "fast-check";
import { expect, test } from "vitest";
import { SourceClock } from "../../core/source";
import { modifiedSince } from "../../core/source/airtable/facts";

test("the source's time is unknown before its first answer, or from one without a date", () => {
  const clock = new SourceClock();
  expect(clock.now()).toBeUndefined();
  clock.record(Number.NaN);
  expect(clock.now()).toBeUndefined();
});

test("the clock is never ahead of the source, and soon less than a second plus the fastest answer behind", () => {
  const answers = fc.array(
    fc.record({ everyMs: fc.integer({ min: 1, max: 5000 }), wayMs: fc.integer({ min: 5, max: 900 }) }),
    {
      minLength: 1,
      maxLength: 60,
    },
  );
  fc.assert(
    fc.property(answers, fc.integer({ min: -1e9, max: 1e12 }), (all, offset) => {
      const clock = new SourceClock();
      let at = 0;
      for (const { everyMs, wayMs } of all) {
        at += everyMs;
        const datedAt = Math.floor((at - wayMs + offset) / 1000) * 1000;
        clock.record(datedAt, at);
        const behind = at + offset - clock.now(at)!;
        expect(behind).toBeGreaterThanOrEqual(0);
        expect(behind).toBeLessThanOrEqual(1000 + wayMs);
      }
    }),
  );
});

test("a source that sets its clock back is trusted after some minutes", () => {
  const clock = new SourceClock();
  clock.record(3_600_000, 0);
  for (let minute = 1; minute <= 12; minute++) clock.record(minute * 60_000, minute * 60_000);
  expect(clock.now(720_000)).toBe(720_000);
});

test("the formula uses whole seconds, and includes the second itself", () => {
  expect(modifiedSince(Date.UTC(2026, 0, 2, 3, 4, 5, 678))).toBe(
    "OR(IS_AFTER(LAST_MODIFIED_TIME(), '2026-01-02T03:04:04.999Z'), IS_AFTER(CREATED_TIME(), '2026-01-02T03:04:04.999Z'))",
  );
});
