import { expect, test } from "vitest";
import { inTurn } from "../../../core/data-browser/account-turns";

/** Starts a read of the account that ends when told. */
function read(accountId: string, patienceMs?: number) {
  const over = Promise.withResolvers<void>();
  const state = { isRunning: false };
  const result = inTurn(
    accountId,
    async () => {
      state.isRunning = true;
      await over.promise;
      state.isRunning = false;
    },
    patienceMs,
  );
  result.catch(() => {});
  return { state, end: over.resolve, result };
}

test("I8: an account reads two pages at once, the next in order, and holds up no other account", async () => {
  const reads = [1, 2, 3, 4].map(() => read("one"));
  const other = read("two");
  const running = () => reads.map(({ state }) => state.isRunning);
  expect(running()).toEqual([true, true, false, false]);
  expect(other.state.isRunning).toBe(true);
  reads[1]!.end();
  await expect.poll(running).toEqual([true, false, true, false]);
  reads[0]!.end();
  await expect.poll(running).toEqual([false, false, true, true]);
  for (const { end } of [...reads, other]) end();
  await Promise.all([...reads, other].map(({ result }) => result));
  const later = read("one");
  expect(later.state.isRunning).toBe(true);
  later.end();
});

test("a page that fails gives its turn to the next one", async () => {
  const fail = Promise.withResolvers<void>();
  const failing = inTurn("one", () => fail.promise);
  const [second, third] = [read("one"), read("one")];
  expect(third.state.isRunning).toBe(false);
  fail.reject(new Error("no"));
  await expect(failing).rejects.toThrow("no");
  await expect.poll(() => third.state.isRunning).toBe(true);
  for (const { end } of [second, third]) end();
});

test("a page that waits too long says why, and takes no turn", async () => {
  const running = [read("one"), read("one")];
  const [impatient, patient] = [read("one", 1), read("one")];
  await expect(impatient.result).rejects.toMatchObject({ code: "replica_busy" });
  running[0]!.end();
  await expect.poll(() => patient.state.isRunning).toBe(true);
  expect(impatient.state.isRunning).toBe(false);
  for (const { end } of [...running, patient]) end();
});
