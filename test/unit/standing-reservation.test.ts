/** When a wait queue of clients uses its standing reservation, makes one, and returns it; on a virtual clock. */
import { expect, test } from "vitest";
import { type LimiterBackend, reservationOf, STANDING_MS, wholeMs } from "../../core/limiter/backend";
import { createFallbackLimiter } from "../../core/limiter/fallback-limiter";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";
import { createWaitQueue } from "../../core/limiter/wait-queue";
import type { Connections, WaitOptions } from "../../core/limiter/waiter";
import { VirtualClock } from "../support/quota-simulation";

const never = new AbortController().signal;
/** How long a call to the backend takes, ms. */
/** When the next standing reservation is made after a request, ms. */
const RENEW_AFTER_MS = 10;
const CALL_MS = 50;

/** A wait queue whose backend always makes a standing reservation if one is wanted. */
function setUp() {
  const clock = new VirtualClock();
  const window = createFallbackLimiter(clock, 1000);
  window.open(5, 0);
  const calls = { used: [] as number[], made: [] as number[], back: [] as number[], late: [] as number[] };
  const backend: LimiterBackend = {
    ...window,
    async acquire(withinMs, back, margin) {
      calls.back.push(...back);
      if (withinMs.length > 0) await clock.sleep(CALL_MS);
      return window.acquire(withinMs, back, margin);
    },
    async reportLateSend({ arrivesBy }) {
      calls.late.push(arrivesBy);
    },
    standing: {
      soon: (renew) => clock.at(clock.now() + RENEW_AFTER_MS, renew),
      async renew(used, isWanted, margin) {
        calls.used.push(...used);
        await clock.sleep(CALL_MS);
        if (!isWanted) return null;
        const end = clock.now() + STANDING_MS + wholeMs(margin);
        calls.made.push(end);
        return reservationOf(end, wholeMs(margin) + STANDING_MS, margin.delayMs + STANDING_MS, 0);
      },
    },
  };
  const queue = createWaitQueue("client", backend, clock, createSchedulingDelay(clock), { onExpired() {} });
  const log: { name: string; at: number }[] = [];
  const call = (name: string, options: WaitOptions & { signal?: AbortSignal } = {}) =>
    queue.wait(Infinity, options.signal ?? never, options).then(
      () => log.push({ name, at: clock.now() }),
      () => log.push({ name: `${name} left`, at: clock.now() }),
    );
  /** Two requests, 100 ms apart: the second one is followed by a standing reservation, from 210 on. */
  async function steady(): Promise<void> {
    void call("first");
    clock.at(100, () => void call("second"));
    await clock.run(220);
    expect(calls.made).toHaveLength(1);
    log.length = 0;
  }
  return { clock, queue, calls, log, call, steady };
}

test("the next request of a steady client goes at once, and is followed by the next reservation", async () => {
  const { clock, calls, log, call, steady } = setUp();
  await steady();
  clock.at(300, () => void call("third"));
  clock.at(500, () => void call("fourth"));
  await clock.run(600);
  expect(log).toEqual([
    { name: "third", at: 300 },
    { name: "fourth", at: 500 },
  ]);
  expect(calls.used).toEqual(calls.made.slice(0, 2));
  expect(calls.made).toHaveLength(3);
});

test("a client that asks rarely has none, and one that stops returns it", async () => {
  const { clock, queue, calls, call } = setUp();
  void call("alone");
  clock.at(2000, () => void call("later"));
  await clock.run(4000);
  expect(calls.made).toEqual([]);
  const other = setUp();
  await other.steady();
  await other.clock.run(2000);
  expect(other.calls.back).toEqual(other.calls.made);
  expect([queue.isIdle, other.queue.isIdle]).toEqual([true, true]);
});

test("a request that comes while one is being made waits for it, and those behind it for none", async () => {
  const { clock, calls, log, call, steady } = setUp();
  await steady();
  clock.at(300, () => void call("third"));
  clock.at(320, () => {
    for (let count = 0; count < 3; count++) void call(`burst ${count}`);
  });
  await clock.run(390);
  expect(log.map(({ name, at }) => [name, at])).toEqual([
    ["third", 300],
    ["burst 0", 360],
  ]);
  // None is made while others wait.
  await clock.run(1000);
  expect(log.slice(2).map(({ name, at }) => [name, at])).toEqual([
    ["burst 1", 410],
    ["burst 2", 410],
  ]);
  expect(calls.made).toHaveLength(3);
  expect(calls.used).toEqual(calls.made.slice(0, 2));
});

test("a request does not overtake others that hold reservations for later", async () => {
  const { clock, calls, log, call } = setUp();
  for (let count = 0; count < 5; count++) void call("first");
  clock.at(350, () => void call("second"));
  // The window is full until 1070, and the standing reservation, which is ready until 1010, waits for this one.
  clock.at(700, () => void call("write", { complete: clock.sleep(400) }));
  clock.at(701, () => void call("read"));
  clock.at(900, () => void call("next"));
  await clock.run(1060);
  expect([calls.made.length, log.length]).toEqual([2, 6]);
  await clock.run(3000);
  expect(log.slice(6).map(({ name }) => name)).toEqual(["read", "next", "write"]);
});

test("a request that is not complete waits for that, and its client may leave meanwhile", async () => {
  const { clock, calls, log, call, steady } = setUp();
  await steady();
  clock.at(300, () => void call("write", { complete: clock.sleep(120) }));
  await clock.run(550);
  expect(log).toEqual([{ name: "write", at: 420 }]);
  const client = new AbortController();
  clock.at(600, () => void call("abandoned", { complete: clock.sleep(100), signal: client.signal }));
  clock.at(650, () => client.abort());
  clock.at(750, () => void call("after"));
  await clock.run(760);
  expect(log.slice(1)).toEqual([
    { name: "abandoned left", at: 650 },
    { name: "after", at: 750 },
  ]);
  expect(calls.back).toEqual([]);
});

test("a request behind one that is not complete does not wait for it", async () => {
  const { clock, log, call, steady } = setUp();
  await steady();
  clock.at(300, () => void call("write", { complete: clock.sleep(250) }));
  clock.at(310, () => void call("read"));
  await clock.run(700);
  expect(log).toEqual([
    { name: "read", at: 310 + CALL_MS },
    // Its reservation, made with the read's, was over by then.
    { name: "write", at: 550 + CALL_MS },
  ]);
});

test("I4: a request that a process which stood still sent late is reported as late, and its reservation as used", async () => {
  const { clock, queue, calls, steady } = setUp();
  await steady();
  void queue.wait(Infinity, never).then(() => clock.stall(300));
  await clock.run(2000);
  expect(calls.late).toEqual(calls.made.slice(0, 1));
  expect(calls.used).toEqual(calls.made.slice(0, 1));
});

test("a pause, a new path and the end of the process each return it", async () => {
  const paused = setUp();
  await paused.steady();
  paused.queue.pause();
  await paused.clock.run(300);
  expect(paused.calls.back).toEqual(paused.calls.made);
  // Another one is due, and is not made.
  const pausedLater = setUp();
  await pausedLater.steady();
  void pausedLater.call("last");
  await pausedLater.clock.run(221);
  pausedLater.queue.pause();
  await pausedLater.clock.run(400);
  expect([pausedLater.calls.used, pausedLater.calls.made.length]).toEqual([pausedLater.calls.made, 1]);

  const moved = setUp();
  await moved.steady();
  const held = { isOpen: true, [Symbol.dispose]() {} };
  const connections = {
    spreadMs: 0,
    dropMs: 250,
    keepWarm() {},
    tryTake: () => held,
  } as unknown as Connections;
  void moved.call("over a new path", { connections });
  await moved.clock.run(400);
  expect(moved.calls.back).toEqual(moved.calls.made.slice(0, 1));
  expect(moved.log).toEqual([{ name: "over a new path", at: 220 + CALL_MS }]);
  expect(moved.calls.made).toHaveLength(1);

  const ended = setUp();
  await ended.steady();
  void ended.call("last");
  await ended.clock.run(240);
  // While the next one is being made.
  const backThen = ended.queue.settled().then(() => [...ended.calls.back]);
  await ended.clock.run(400);
  expect(ended.calls.made).toHaveLength(2);
  expect(await backThen).toEqual(ended.calls.made.slice(1));
  expect(ended.queue.isIdle).toBe(true);

  const endedAtOnce = setUp();
  await endedAtOnce.steady();
  void endedAtOnce.call("last");
  await endedAtOnce.clock.run(221);
  // Before the next one is being made: none is.
  const settled = endedAtOnce.queue.settled();
  await endedAtOnce.clock.run(400);
  await settled;
  expect([endedAtOnce.calls.used, endedAtOnce.calls.made.length]).toEqual([endedAtOnce.calls.made, 1]);
});
