/** One timer for all deadlines: each callback is called once, not before its time, and not after it was canceled. */
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { beforeDeadline } from "../../core/async";
import { until } from "../support/poll";

test("a deadline calls back once, not before its time; one that was canceled in time does not", async () => {
  const deadlines = fc.record({ ms: fc.integer({ min: -5, max: 60 }), isCanceled: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(deadlines, { minLength: 1, maxLength: 20 }), async (all) => {
      const from = performance.now();
      const calledAfter: number[][] = all.map(() => []);
      const cancels = all.map(({ ms }, index) =>
        beforeDeadline(ms, () => void calledAfter[index]!.push(performance.now() - from)),
      );
      for (const [index, { isCanceled }] of all.entries()) if (isCanceled) cancels[index]!();
      const last = Promise.withResolvers<void>();
      beforeDeadline(61, last.resolve);
      await last.promise;
      for (const [index, { ms, isCanceled }] of all.entries()) {
        const called = calledAfter[index]!;
        expect(called).toHaveLength(isCanceled ? 0 : 1);
        for (const afterMs of called) expect(afterMs).toBeGreaterThanOrEqual(ms);
      }
    }),
    { numRuns: 20 },
  );
});

test("a callback may set another deadline", async () => {
  const seen: string[] = [];
  beforeDeadline(1, () => void beforeDeadline(1, () => void seen.push("second")));
  await until(() => seen.length > 0, { what: "the second deadline has passed" });
  expect(seen).toEqual(["second"]);
});

test("a callback may cancel a deadline that is due at the same time", async () => {
  const seen: string[] = [];
  const cancels: (() => void)[] = [];
  for (const name of ["one", "other"])
    cancels.push(
      beforeDeadline(-1, () => {
        seen.push(name);
        for (const cancel of cancels) cancel();
      }),
    );
  await until(() => seen.length > 0, { what: "the first deadline has passed" });
  expect(seen).toEqual(["one"]);
});

test("deadlines share a timer: one that is later than the others sets none", () => {
  const cancelFirst = beforeDeadline(10_000, () => {});
  const timers = vi.spyOn(globalThis, "setTimeout");
  const cancels = Array.from({ length: 100 }, (_, index) => beforeDeadline(20_000 + index, () => {}));
  expect(timers).not.toHaveBeenCalled();
  for (const cancel of [cancelFirst, ...cancels]) cancel();
  timers.mockRestore();
});
