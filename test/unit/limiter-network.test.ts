/**
 * Calls of several processes on a network, on a virtual clock and with one limiter backend: what the source sees, with
 * any delays, jitter and stalls.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { HeldConnection } from "../../core/http/connections";
import type { Priority } from "../../core/limiter/backend";
import { createFallbackLimiter } from "../../core/limiter/fallback-limiter";
import { createSchedulingDelay } from "../../core/limiter/scheduling-delay";
import { createWaitQueue } from "../../core/limiter/wait-queue";
import type { Connections } from "../../core/limiter/waiter";
import { mostWithin, VirtualClock } from "../support/quota-simulation";

const never = new AbortController().signal;
/** Every half second the source closes some connections, idle or in use. */
const CLOSES_EVERY_MS = 500;

interface Way {
  oneWayMs: number;
  jitterMs: number;
  handshakes: number;
  stalls: { atMs: number; ms: number }[];
}

/** The connections of one process, which take some round trips to open, and may be closed at any time. */
function farConnections(clock: VirtualClock, way: Way, random: () => number) {
  let resting = 0;
  const inHand = new Set<{ isOpen: boolean }>();
  function hold(): HeldConnection {
    let isLeft = false;
    const state = { isOpen: true };
    inHand.add(state);
    return {
      get isOpen() {
        return state.isOpen && !isLeft;
      },
      send: () => Promise.reject(new Error("nothing is sent here")),
      exchange: () => Promise.reject(new Error("nothing is sent here")),
      [Symbol.dispose]() {
        inHand.delete(state);
        if (!isLeft && state.isOpen) resting++;
        isLeft = true;
      },
    };
  }
  const connections: Connections = {
    spreadMs: way.jitterMs,
    dropMs: 0,
    keepWarm: () => {},
    tryTake() {
      if (resting === 0) return undefined;
      resting--;
      return hold();
    },
    async take() {
      await clock.sleep(way.handshakes * 2 * way.oneWayMs + random() * way.jitterMs);
      return hold();
    },
  };
  const closeSome = () => {
    resting = Math.floor(resting * random());
    for (const state of inHand) if (random() < 0.2) state.isOpen = false;
    clock.at(clock.now() + CLOSES_EVERY_MS, closeSome);
  };
  clock.at(CLOSES_EVERY_MS, closeSome);
  return connections;
}

/** Twenty seconds of a Turbo sync and of clients in bursts. @returns when requests reached the source */
async function arrivals(way: Way, seed: number, withConnections = true): Promise<number[]> {
  const clock = new VirtualClock();
  const backend = createFallbackLimiter(clock, 1000);
  backend.open(5, 0);
  const untilMs = 20_000;
  const arrived: number[] = [];
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  function process(kind: Priority) {
    const connections = farConnections(clock, way, random);
    const queue = createWaitQueue(kind, backend, clock, createSchedulingDelay(clock), { onExpired() {} });
    return async () => {
      using held = await queue.wait(Infinity, never, {
        connections: withConnections ? connections : undefined,
      });
      if (withConnections) expect(held?.isOpen).toBe(true);
      // Without an idle one, it is opened now.
      const openedMs = withConnections || random() < 0.5 ? 0 : way.handshakes * 2 * way.oneWayMs;
      arrived.push(clock.now() + openedMs + way.oneWayMs + random() * way.jitterMs);
      await clock.sleep(2 * way.oneWayMs + random() * 100);
    };
  }
  const sync = process("sync");
  for (let table = 0; table < 3; table++) {
    (async () => {
      while (clock.now() < untilMs) await sync();
    })();
  }
  for (const client of [process("client"), process("client")]) {
    (async () => {
      for (; clock.now() < untilMs; await clock.sleep(4000 * random())) {
        await Promise.all(Array.from({ length: Math.ceil(8 * random()) }, client));
      }
    })();
  }
  for (const { atMs, ms } of way.stalls) clock.at(atMs, () => clock.stall(ms));
  await clock.run(untilMs);
  return arrived.sort((a, b) => a - b);
}

const way: fc.Arbitrary<Way> = fc.record({
  oneWayMs: fc.integer({ min: 0, max: 150 }),
  jitterMs: fc.integer({ min: 0, max: 150 }),
  handshakes: fc.integer({ min: 1, max: 3 }),
  stalls: fc.array(
    fc.record({ atMs: fc.integer({ min: 0, max: 20_000 }), ms: fc.integer({ min: 1, max: 3000 }) }),
    { maxLength: 4 },
  ),
});

test("I4: with any latency, handshakes and stalls, the source sees no sixth request in a second", async () => {
  await fc.assert(
    fc.asyncProperty(way, fc.nat(), async (far, seed) => {
      const arrived = await arrivals(far, seed);
      expect(arrived.length).toBeGreaterThan(20);
      expect(mostWithin(arrived, 1000)).toBeLessThanOrEqual(5);
    }),
    { numRuns: 100 },
  );
});

test("a network without jitter costs a fiftieth of the rate, one with 100 ms a tenth", async () => {
  const rateOf = async (jitterMs: number) => {
    const arrived = await arrivals({ oneWayMs: 50, jitterMs, handshakes: 2, stalls: [] }, 7);
    return (arrived.length - 1) / ((arrived.at(-1)! - arrived[0]!) / 1000);
  };
  expect(await rateOf(0)).toBeGreaterThanOrEqual(0.95 * 5);
  expect(await rateOf(100)).toBeGreaterThanOrEqual(0.85 * 5);
});

test("without an open connection it would see more: the handshake moves a request out of its reservation", async () => {
  const arrived = await arrivals({ oneWayMs: 50, jitterMs: 0, handshakes: 2, stalls: [] }, 7, false);
  expect(mostWithin(arrived, 1000)).toBeGreaterThan(5);
});
