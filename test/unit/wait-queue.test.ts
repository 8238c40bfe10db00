/** The order in one key's wait queue, on a virtual clock and with a limiter backend of this process. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { HeldConnection } from "../../core/http/connections";
import { type LimiterBackend, type Priority, reservationOf } from "../../core/limiter/backend";
import { processClock, type QuotaClock } from "../../core/limiter/clock";
import { createFallbackLimiter } from "../../core/limiter/fallback-limiter";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";
import { createWaitQueue } from "../../core/limiter/wait-queue";
import { until } from "../support/poll";
import { mostWithin, slowed, VirtualClock } from "../support/quota-simulation";

const never = new AbortController().signal;

function setUp(
  change: (backend: LimiterBackend, clock: VirtualClock) => LimiterBackend = (backend) => backend,
  kind: Priority = "client",
) {
  const clock = new VirtualClock();
  const window = createFallbackLimiter(clock, 1000);
  window.open(5, 0);
  let expired = 0;
  const queue = createWaitQueue(kind, change(window, clock), clock, createSchedulingDelay(clock), {
    onExpired: () => expired++,
  });
  const log: { name: string; at: number; code?: string | undefined }[] = [];
  function call(name: string, deadlineMs = Infinity, signal: AbortSignal = never, caller?: string): void {
    queue.wait(clock.now() + deadlineMs, signal, { caller }).then(
      () => log.push({ name, at: clock.now() }),
      (error: { code?: string }) => log.push({ name, at: clock.now(), code: error.code }),
    );
  }
  return { clock, window, queue, log, call, expired: () => expired };
}

test("five calls go at once, the next five a window later, in order of arrival", async () => {
  const { clock, queue, log, call } = setUp();
  for (let i = 0; i < 12; i++) call(`call ${i}`);
  await clock.run(5000);
  expect(log.map(({ name }) => name)).toEqual(Array.from({ length: 12 }, (_, i) => `call ${i}`));
  expect(log.map(({ at }) => at)).toEqual([0, 0, 0, 0, 0, 1020, 1020, 1020, 1020, 1020, 2040, 2040]);
  expect(queue.isIdle).toBe(true);
});

test("a call that would miss its deadline is refused as soon as that is known", async () => {
  const { clock, log, call } = setUp();
  for (let i = 0; i < 5; i++) call("first");
  call("short", 900);
  call("long", 1100);
  await clock.run(5000);
  expect(log.filter(({ name }) => name !== "first")).toEqual([
    { name: "short", at: 0, code: "quota_timeout" },
    { name: "long", at: 1020 },
  ]);
});

test("the reservation of a client that disconnects goes to the next in the queue", async () => {
  const { clock, log, call } = setUp();
  for (let i = 0; i < 5; i++) call("first");
  const client = new AbortController();
  for (let i = 0; i < 5; i++) call(`second ${i}`, Infinity, i === 2 ? client.signal : never);
  call("third");
  clock.at(500, () => client.abort({ code: "gone" }));
  await clock.run(5000);
  expect(log.slice(5)).toEqual([
    { name: "second 2", at: 500, code: "gone" },
    ...["second 0", "second 1", "second 3", "second 4", "third"].map((name) => ({ name, at: 1020 })),
  ]);
});

test("a block voids reservations made before it, and their calls go first when it ends", async () => {
  const { clock, window, log, call } = setUp();
  for (let i = 0; i < 7; i++) call(`call ${i}`);
  clock.at(800, () => {
    window.pauseUntil(30_500);
    call("later");
    call("impatient", 10_000);
  });
  await clock.run(60_000);
  expect(log.slice(5)).toEqual([
    { name: "impatient", at: 1015, code: "quota_timeout" },
    { name: "call 5", at: 30_500 },
    { name: "call 6", at: 30_500 },
    { name: "later", at: 30_500 },
  ]);
});

test("I4: a reservation that the process reaches too late is released, and another one is acquired", async () => {
  const delaysMs = [40];
  const slow = (backend: LimiterBackend, clock: VirtualClock) =>
    slowed(backend, clock, () => delaysMs.pop() ?? 0);
  const { clock, log, call, expired } = setUp(slow);
  for (let i = 0; i < 5; i++) call(`call ${i}`);
  await clock.run(50);
  call("call 5");
  await clock.run(5000);
  // The first one was reserved for 0 and sent at 40: the sixth counts from there.
  expect(log.map(({ at }) => at)).toEqual([40, 40, 40, 40, 40, 1060]);
  expect(expired()).toBe(1);
});

test("I4: if a process stalled before it sent a call, the window counts from the time of sending", async () => {
  const { clock, queue, log, call } = setUp();
  queue.wait(Infinity, never).then(() => clock.stall(200));
  await clock.run(100);
  for (let i = 0; i < 5; i++) call(`call ${i}`);
  await clock.run(5000);
  // The four may end when the first does: after the stall was measured, their reservations begin 5 ms earlier.
  expect(log.map(({ at }) => at)).toEqual([195, 195, 195, 195, 1220]);
  expect(queue.isIdle).toBe(true);
});

test("a call that was sent in time is not reported as late, however busy the process is after it", async () => {
  let told = 0;
  const { clock, queue } = setUp((backend) => ({ ...backend, reportLateSend: async () => void told++ }));
  const stallOnceSent = () => process.nextTick(() => process.nextTick(() => clock.stall(200)));
  queue.wait(Infinity, never).then(stallOnceSent);
  await clock.run(0);
  expect([told, queue.isIdle]).toEqual([0, true]);
});

test("I4: a call with a reservation that was made in advance is reported if it was sent late, and only then", async () => {
  const spacingMs = 333;
  async function reportsOf(
    stall: (clock: VirtualClock) => void,
  ): Promise<{ told: number; acquired: number }> {
    let [told, acquired, lastAt] = [0, 0, -Infinity];
    const { clock, queue } = setUp(
      (backend, clock) => ({
        ...backend,
        advance: { spacingMs, isWorthwhile: true, isValid: () => true },
        async acquire(within, _back, margin, { ahead = 0 } = {}) {
          if (within.length === 0) return { reservations: [], nextAt: lastAt + spacingMs };
          acquired++;
          const from = Math.max(clock.now(), lastAt + spacingMs);
          const ats = Array.from({ length: 1 + ahead }, (_, index) => from + index * spacingMs);
          lastAt = ats.at(-1)!;
          const reservations = ats.map((at) => reservationOf(at + 20, 20, margin.delayMs, 0));
          return { reservations, nextAt: lastAt + spacingMs };
        },
        reportLateSend: async () => void told++,
      }),
      "sync",
    );
    const requests = (async () => {
      for (let request = 1; request <= 6; request++) {
        await queue.wait(Infinity, never);
        if (request === 6) stall(clock);
        else await clock.sleep(50);
      }
    })();
    await clock.run(2200);
    await requests;
    return { told, acquired };
  }
  // The fifth request's call reserves for the sixth.
  expect(await reportsOf((clock) => clock.stall(200))).toEqual({ told: 1, acquired: 5 });
  const onceSent = (clock: VirtualClock) => process.nextTick(() => process.nextTick(() => clock.stall(200)));
  expect(await reportsOf(onceSent)).toEqual({ told: 0, acquired: 5 });
});

test("I4: once a request was sent late, what was made in advance is not used, and is made again when the backend knows", async () => {
  const spacingMs = 333;
  const [events, sentAt]: [string[], number[]] = [[], []];
  let lastAt = -Infinity;
  const { clock, queue } = setUp(
    (backend, clock) => ({
      ...backend,
      advance: { spacingMs, isWorthwhile: true, isValid: () => true },
      async acquire(within, back, margin, { ahead = 0 } = {}) {
        events.push(`${within.length} wanted, ${ahead} ahead, ${back.length} back`);
        const from = Math.max(clock.now(), lastAt + spacingMs);
        const count = within.length > 0 ? within.length + ahead : 0;
        const ats = Array.from({ length: count }, (_, index) => from + index * spacingMs);
        lastAt = ats.at(-1) ?? lastAt;
        return {
          reservations: ats.map((at) => reservationOf(at + 20, 20, margin.delayMs, 0)),
          nextAt: lastAt + spacingMs,
        };
      },
      async reportLateSend() {
        events.push("late");
        await clock.sleep(300);
        lastAt = clock.now() + 700;
        events.push("known");
      },
    }),
    "sync",
  );
  const requests = (async () => {
    for (let request = 1; request <= 6; request++) {
      await queue.wait(Infinity, never);
      sentAt.push(clock.now());
      // The call of the fifth reserves for the sixth and one more. The sixth waits for its time when the fifth is sent.
      if (request === 5) clock.stall(200);
      else await clock.sleep(50);
    }
  })();
  await clock.run(5000);
  await requests;
  expect(events.slice(4)).toEqual([
    "1 wanted, 2 ahead, 0 back",
    "late",
    "known",
    // The sixth has returned its own at its time, and waits in line since.
    "1 wanted, 2 ahead, 2 back",
    // Those that nobody uses.
    "0 wanted, 0 ahead, 2 back",
  ]);
  // The backend counts the fifth from when it knew of it.
  expect(sentAt[5]! - sentAt[4]!).toBeGreaterThan(900);
});

// The first request has an ordinary reservation, the sixth one that was made in advance by the fifth.
test.each([
  [1, 1],
  [6, 5],
])(
  "I4: on the real clock, the reservation of request %i is checked only once it has been sent",
  async (last, calls) => {
    const spacingMs = 60;
    let [told, acquired, lastAt] = [0, 0, -Infinity];
    const backend: LimiterBackend = {
      advance: { spacingMs, isWorthwhile: true, isValid: () => true },
      async acquire(within, _back, _margin, { ahead = 0 } = {}) {
        if (within.length > 0) acquired++;
        const from = Math.max(performance.now() + 10, lastAt + spacingMs);
        const ats = within.length > 0 ? [0, 1, 2].slice(0, 1 + ahead).map((n) => from + n * spacingMs) : [];
        lastAt = ats.at(-1) ?? lastAt;
        // Valid for so long that a busy machine is not late.
        const reservations = ats.map((at) => reservationOf(at + 20, 20, 2000, 0));
        return { reservations, nextAt: lastAt + spacingMs };
      },
      isVoid: async () => false,
      reportLateSend: async () => void told++,
    };
    // The clock jumps when the request is sent.
    let jumpMs = 0;
    const clock: QuotaClock = {
      now: () => performance.now() + jumpMs,
      at: (atMs, wake) => processClock.at(atMs - jumpMs, wake),
    };
    const queue = createWaitQueue("sync", backend, clock, createSchedulingDelay(clock), { onExpired() {} });
    // As many promises lie between a queue and a request in the product.
    const hops = async (count: number): Promise<void> => {
      if (count > 0) return await hops(count - 1);
      await queue.wait(Infinity, never);
    };
    for (let request = 1; request <= last; request++) await hops(6);
    jumpMs = 5000;
    await until(() => told > 0, { what: "the late request is reported" });
    expect([told, acquired]).toEqual([1, calls]);
  },
);

test("a call whose reservation cannot be checked again fails with the backend's error", async () => {
  const failing = (backend: LimiterBackend): LimiterBackend => ({
    ...backend,
    isVoid: () => Promise.reject({ code: "control_unavailable" }),
  });
  const { clock, queue, log, call } = setUp(failing);
  for (let i = 0; i < 6; i++) call(`call ${i}`);
  await clock.run(5000);
  expect(log.slice(5)).toEqual([{ name: "call 5", at: 1015, code: "control_unavailable" }]);
  expect(queue.isIdle).toBe(true);
});

test("a process that is always late makes progress with reservations that are valid for longer", async () => {
  for (const kind of ["client", "sync"] as const) {
    const { clock, log, call, expired } = setUp(
      (backend, clock) => slowed(backend, clock, () => 40 + (clock.now() % 30)),
      kind,
    );
    call("call");
    await clock.run(5000);
    expect([kind, expired(), log]).toEqual([kind, 1, [{ name: "call", at: 90 }]]);
  }
});

test("I4: a process that is late by more than a reservation may be valid sends nothing until it is faster", async () => {
  for (const kind of ["client", "sync"] as const) {
    const late: number[] = [];
    const { clock, log, call } = setUp(
      (backend, clock) => ({
        ...slowed(backend, clock, () => (clock.now() < 3000 ? 130 : 10)),
        reportLateSend: async () => void late.push(clock.now()),
      }),
      kind,
    );
    for (let i = 0; i < 6; i++) call("call");
    await clock.run(10_000);
    expect(log).toHaveLength(6);
    expect([kind, late, log[0]!.at > 3000]).toEqual([kind, [], true]);
    const times = log.map(({ at }) => at);
    expect(mostWithin(times, 1019.9)).toBeLessThanOrEqual(5);
  }
});

test("in any order of events: five in a window, in order, and none forgotten", async () => {
  const calls = fc.array(
    fc.record({
      pauseMs: fc.integer({ min: 0, max: 400 }),
      deadlineMs: fc.integer({ min: 0, max: 4000 }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 2000 }), { nil: undefined }),
    }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(calls, async (history) => {
      const { clock, queue, log, call } = setUp();
      for (const [index, { pauseMs, deadlineMs, leavesAfterMs }] of history.entries()) {
        const client = new AbortController();
        if (leavesAfterMs !== undefined)
          clock.at(clock.now() + leavesAfterMs, () => client.abort({ code: "gone" }));
        call(String(index), deadlineMs, client.signal);
        await clock.run(clock.now() + pauseMs);
      }
      await clock.run(clock.now() + 10_000);
      const gone = log.filter(({ code }) => code === undefined);
      expect(
        mostWithin(
          gone.map(({ at }) => at),
          1019.9,
        ),
      ).toBeLessThanOrEqual(5);
      const times = gone.toSorted((a, b) => Number(a.name) - Number(b.name)).map(({ at }) => at);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(log).toHaveLength(history.length);
      expect(queue.isIdle).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test("a request gets its reservation while it is completed, and is sent as soon as it is", async () => {
  const { clock, queue, log, call } = setUp();
  sendWhenComplete("write", 3, { clock, queue, log });
  for (let i = 0; i < 5; i++) call(`call ${i}`);
  await clock.run(5000);
  expect(log.map(({ at }) => at)).toEqual([0, 0, 0, 0, 3, 1020]);
  expect(queue.isIdle).toBe(true);
});

test("I4: a reservation that ends before its request is complete is released, and another one is acquired", async () => {
  const { clock, queue, log, call, expired } = setUp();
  sendWhenComplete("write", 700, { clock, queue, log });
  for (let i = 0; i < 5; i++) call(`call ${i}`);
  await clock.run(500);
  // The fifth of them got what the write could not use.
  expect(log.map(({ at }) => at)).toEqual([0, 0, 0, 0, 5]);
  await clock.run(5000);
  expect(log.at(-1)).toEqual({ name: "write", at: 1020 });
  expect([expired(), queue.isIdle]).toEqual([0, true]);
});

test("a request that cannot be completed leaves, and its reservation goes to the next in the queue", async () => {
  const { clock, queue, log, call } = setUp();
  queue
    .wait(Infinity, never, { complete: Promise.reject({ code: "broken" }) })
    .catch(({ code }) => log.push({ name: "write", at: clock.now(), code }));
  for (let i = 0; i < 5; i++) call(`call ${i}`);
  await clock.run(5000);
  expect(log[0]).toEqual({ name: "write", at: 0, code: "broken" });
  expect(log.slice(1).map(({ at }) => at)).toEqual([0, 0, 0, 0, 0]);
  expect(queue.isIdle).toBe(true);
});

test("I4: whenever requests are completed, and whoever leaves: five in a window, and none forgotten", async () => {
  const calls = fc.array(
    fc.record({
      pauseMs: fc.integer({ min: 0, max: 300 }),
      completeAfterMs: fc.option(fc.integer({ min: 0, max: 1500 }), { nil: undefined }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 2000 }), { nil: undefined }),
    }),
    { maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(calls, async (history) => {
      const { clock, queue, log } = setUp();
      for (const [index, { pauseMs, completeAfterMs, leavesAfterMs }] of history.entries()) {
        const client = new AbortController();
        if (leavesAfterMs !== undefined)
          clock.at(clock.now() + leavesAfterMs, () => client.abort({ code: "gone" }));
        sendWhenComplete(String(index), completeAfterMs, { clock, queue, log }, client.signal);
        await clock.run(clock.now() + pauseMs);
      }
      await clock.run(clock.now() + 20_000);
      const sent = log.filter(({ code }) => code === undefined).map(({ at }) => at);
      // A reservation is valid for 5 ms, which its margin of 20 ms covers.
      expect(mostWithin(sent, 1014.9)).toBeLessThanOrEqual(5);
      expect(log).toHaveLength(history.length);
      expect(queue.isIdle).toBe(true);
    }),
    { numRuns: 200 },
  );
});

/** Waits with a request that is complete only after a while, and logs when it was sent. */
function sendWhenComplete(
  name: string,
  afterMs: number | undefined,
  { clock, queue, log }: Pick<ReturnType<typeof setUp>, "clock" | "queue" | "log">,
  signal: AbortSignal = never,
): void {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (afterMs !== undefined) clock.at(clock.now() + afterMs, () => resolve());
  queue.wait(Infinity, signal, afterMs === undefined ? {} : { complete: promise }).then(
    () => log.push({ name, at: clock.now() }),
    (error: { code?: string }) => log.push({ name, at: clock.now(), code: error.code }),
  );
}

test("callers take turns: one with fifty calls delays another with two by a window, not by ten", async () => {
  const { clock, log, call } = setUp();
  for (let i = 0; i < 50; i++) call(`many ${i}`, Infinity, never, "many");
  clock.at(10, () => {
    for (let i = 0; i < 2; i++) call(`few ${i}`, Infinity, never, "few");
  });
  await clock.run(20_000);
  expect(log.filter(({ name }) => name.startsWith("few")).map(({ at }) => at)).toEqual([1020, 1020]);
  expect(log.map(({ name }) => name).filter((name) => name.startsWith("many"))).toEqual(
    Array.from({ length: 50 }, (_, i) => `many ${i}`),
  );
});

test("whatever callers request, each one's calls keep their order", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ caller: fc.constantFrom("a", "b", "c"), at: fc.nat(3000) }), { maxLength: 40 }),
      async (asks) => {
        const { clock, log, call } = setUp();
        const inOrder = asks
          .map((ask, index) => ({ ...ask, index }))
          .sort((x, y) => x.at - y.at || x.index - y.index);
        for (const { caller, at, index } of inOrder) {
          clock.at(at, () => call(`${caller} ${index}`, Infinity, never, caller));
        }
        await clock.run(60_000);
        expect(log).toHaveLength(asks.length);
        for (const caller of ["a", "b", "c"]) {
          const went = log.map(({ name }) => name).filter((name) => name.startsWith(caller));
          const came = inOrder
            .filter((ask) => ask.caller === caller)
            .map(({ index }) => `${caller} ${index}`);
          expect(went).toEqual(came);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test("I4: a reservation is not used on another connection than the one that it was made for", async () => {
  const returned: number[] = [];
  const opened: { isOpen: boolean }[] = [];
  const { clock, queue, call } = setUp((backend) => ({
    ...backend,
    async acquire(within, back, ...rest) {
      returned.push(...back);
      const grant = await backend.acquire(within, back, ...rest);
      // The source closes the connection between the grant and the time of the reservation.
      if (grant.reservations[0]?.at === 1020 && returned.length === 0) opened.at(-1)!.isOpen = false;
      return grant;
    },
  }));
  const tryTake = () => {
    const held = { isOpen: true, [Symbol.dispose]() {} };
    opened.push(held);
    return held as unknown as HeldConnection;
  };
  const connections = { spreadMs: 0, dropMs: 0, keepWarm() {}, tryTake, take: async () => tryTake() };
  for (let i = 0; i < 5; i++) call("first");
  const sixth = queue.wait(Infinity, never, { connections });
  await clock.run(5000);
  expect(returned).toHaveLength(1);
  expect(await sixth).toBe(opened.at(-1));
});
