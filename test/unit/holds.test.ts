/** The bases that a worker holds: none is given up while it stops. */
import { expect, test } from "vitest";
import { Holds } from "../../apps/worker/holds";
import { createLogger } from "../../core/log";

test("a worker that stops waits for the jobs that it puts back: one that is lost counts as a crash of its base", async () => {
  const putBack = Promise.withResolvers<void>();
  const queue = { suspects: async () => new Map(), giveBack: () => putBack.promise };
  const ctx = { log: createLogger("silent", "test"), config: { workerConcurrency: 1 } };
  const room = Promise.withResolvers<void>();
  const holds = new Holds(ctx as never, queue as never, {
    leaseBase: async () => 60_000,
    isSaturated: () => false,
    onRoom: room.resolve,
  });
  await holds.take([{ id: "job1", baseId: "bas1" }]);
  await room.promise;
  let isClosed = false;
  const closing = holds.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  putBack.resolve();
  await closing;
});
