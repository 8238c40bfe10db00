/** Checking a password costs a core: many wait for each other, and nothing else waits for them. */
import { expect, onTestFinished, test, vi } from "vitest";
import { hashPassword, isPasswordQueueFull, verifyPassword } from "../../core/control";

const MANY = 20;

test("many checks run one after another, and an urgent one is next", async () => {
  const hash = await hashPassword("correct horse");
  const real = Bun.password.verify.bind(Bun.password);
  let [running, most] = [0, 0];
  const spy = vi.spyOn(Bun.password, "verify").mockImplementation(async (...given) => {
    most = Math.max(most, ++running);
    return real(...given).finally(() => running--);
  });
  onTestFinished(() => spy.mockRestore());
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
  expect(most).toBe(1);
});

test("a queue that is full says so", async () => {
  // What a check costs is of no interest here.
  const spy = vi.spyOn(Bun.password, "verify").mockResolvedValue(false);
  onTestFinished(() => spy.mockRestore());
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const checks: Promise<boolean>[] = [];
  while (!isPasswordQueueFull()) checks.push(verifyPassword("a guess", "a hash"));
  expect(checks.length).toBeGreaterThan(20);
  await vi.advanceTimersByTimeAsync(60_000);
  await Promise.all(checks);
  expect(isPasswordQueueFull()).toBe(false);
});
