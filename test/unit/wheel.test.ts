/** Coarse waits: one timer for all, and none of them forgotten. */
import { afterEach, expect, test, vi } from "vitest";
import { waitCoarsely } from "../../core/async";

afterEach(() => vi.restoreAllMocks());

const never = new AbortController().signal;

// First: no wait has started the timer yet.
test("a wait ends although the process is stopped for a second before any reading of the clock", async () => {
  const now = performance.now.bind(performance);
  let readings = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now() + 1000 * ++readings);
  await waitCoarsely(250, never);
});

test("all waits share one timer, and none ends before its time", async () => {
  const timers = vi.spyOn(globalThis, "setInterval");
  const startedAt = performance.now();
  const took = await Promise.all(
    [0, 1, 100, 260, 260, 600].map(async (ms) => {
      await waitCoarsely(ms, never);
      return [ms, performance.now() - startedAt] as const;
    }),
  );
  for (const [ms, tookMs] of took) expect(tookMs).toBeGreaterThanOrEqual(ms);
  expect(timers).toHaveBeenCalledTimes(1);
  await waitCoarsely(0, never);
  expect(timers).toHaveBeenCalledTimes(2);
});

test("a wait ends at once when its signal aborts, and those of other signals do not", async () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const first = waitCoarsely(3600_000, one.signal);
  const second = waitCoarsely(3600_000, one.signal);
  let isOver = false;
  const third = waitCoarsely(3600_000, other.signal).finally(() => {
    isOver = true;
  });
  one.abort();
  await expect(first).rejects.toMatchObject({ code: "sync_stopped" });
  await expect(second).rejects.toMatchObject({ code: "sync_stopped" });
  await expect(waitCoarsely(1, one.signal)).rejects.toMatchObject({ code: "sync_stopped" });
  expect(isOver).toBe(false);
  other.abort();
  await expect(third).rejects.toMatchObject({ code: "sync_stopped" });
});

test("a wait ends although the clock was ahead before it, as in a test that lets a day pass", async () => {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 86_400_000);
  const early = new AbortController();
  const waiting = waitCoarsely(0, never);
  const aborted = waitCoarsely(600, early.signal);
  await waiting;
  clock.mockRestore();
  early.abort();
  await expect(aborted).rejects.toMatchObject({ code: "sync_stopped" });
  await waitCoarsely(0, never);
});
