/** Checking a password keeps a core busy: many checks wait for each other, and nothing else waits for them. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { hashPassword, isPasswordQueueFull, verifyPassword } from "../../core/control/accounts";

const MANY = 20;
const LONGEST_MS = 20_000;
/** How far the clock goes on between two checks of a condition. */
const STEP_MS = 500;

test("many checks run one after another, and an urgent one is next", async () => {
  const hash = await hashPassword("correct horse");
  let done = 0;
  const checks = Array.from({ length: MANY }, async () => {
    const isRight = await verifyPassword("a guess", hash);
    done++;
    return isRight;
  });
  const urgent = verifyPassword("correct horse", hash, { isUrgent: true }).then((isRight) => ({
    isRight,
    before: done,
  }));
  expect(await urgent).toEqual({ isRight: true, before: 1 });
  expect(await Promise.all(checks)).toEqual(Array(MANY).fill(false));
});

test("an invalid hash fails its check alone", async () => {
  await expect(verifyPassword("a guess", "no hash")).rejects.toThrow(/UnsupportedAlgorithm|hash/i);
  expect(await verifyPassword("correct horse", await hashPassword("correct horse"))).toBe(true);
});

test.skipIf(process.platform !== "linux")("checks have a lower priority than everything else", async () => {
  await hashPassword("correct horse");
  const ofThreads = readdirSync("/proc/self/task").map((id) => niceOf(id));
  expect(ofThreads).toContain(5);
});

test("a full queue is reported", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const checks: Promise<boolean>[] = [];
  while (!isPasswordQueueFull()) checks.push(verifyPassword("a guess", "no hash"));
  expect(checks.length).toBeGreaterThan(MANY);
  let isOver = false;
  void Promise.allSettled(checks).then(() => {
    isOver = true;
  });
  await vi.waitFor(
    () => {
      vi.advanceTimersByTime(STEP_MS);
      expect(isOver).toBe(true);
    },
    { timeout: LONGEST_MS },
  );
  expect(isPasswordQueueFull()).toBe(false);
});

/** @param id of a thread of this process */
function niceOf(id: string): number {
  const stat = readFileSync(`/proc/self/task/${id}/stat`, "utf8");
  // The process name in front may contain spaces; nice is the 19th value of all, and the 17th after the name.
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
}
