/**
 * The spread of one direction, estimated from round trips: with any network, it covers the delay of one request behind
 * another.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { RoundTrips } from "../../core/http/connections/round-trips";
import { LEAST_MARGIN_MS } from "../../core/limiter/base-queue";

/** How often the latency is measured, and how many pairs of requests each time. */
const TIMES = 8;
const PAIRS = 500;

/** Even numbers from 0 to 1, the same for the same seed. */
function randoms(seed: number) {
  let state = seed;
  // Mulberry32.
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test("nothing is known before the first measurement", () => {
  expect(new RoundTrips().spreadMs).toBe(0);
});

test("with any latency and jitter: enough for almost all, and less than twice what is needed", () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 5, max: 150 }),
      fc.integer({ min: 0, max: 100 }),
      (seed, oneWayMs, part) => {
        const random = randoms(seed);
        const jitterMs = (oneWayMs * part) / 100;
        const oneWay = () => oneWayMs + jitterMs * (2 * random() - 1);
        let late = 0;
        // The spread is measured repeatedly: an estimate that is slightly low does not last.
        for (let time = 0; time < TIMES; time++) {
          const way = new RoundTrips();
          for (let handshake = 0; handshake < 64; handshake++) way.add(oneWay() + oneWay());
          for (let pair = 0; pair < PAIRS; pair++)
            if (oneWay() - oneWay() > way.spreadMs + LEAST_MARGIN_MS) late++;
          // With the assumption before anything was measured.
          expect(way.spreadMs).toBeLessThanOrEqual(1.5 * 2 * jitterMs + 0.2 * 2 * oneWayMs);
        }
        expect(late / (TIMES * PAIRS)).toBeLessThanOrEqual(0.01);
      },
    ),
  );
});

test("few round trips are not conclusive: jitter is assumed, and the assumption fades as more are measured", () => {
  const way = new RoundTrips();
  way.add(100);
  const first = way.spreadMs;
  expect(first).toBeGreaterThanOrEqual(50);
  for (let handshake = 0; handshake < 63; handshake++) way.add(100);
  expect(way.spreadMs).toBeLessThan(first / 3);
});

test("the assumption is a part of the usual round trip, whatever else a handshake took", () => {
  const [slow, usual] = [new RoundTrips(), new RoundTrips()];
  slow.add(400, 200);
  usual.add(200, 200);
  expect(slow.spreadMs).toBe(usual.spreadMs);
});

test.each([
  { oneWayMs: 40, jitterMs: 20, atMostMs: 55 },
  { oneWayMs: 100, jitterMs: 60, atMostMs: 140 },
])("$oneWayMs ± $jitterMs ms one way are covered, at a known price", ({ oneWayMs, jitterMs, atMostMs }) => {
  const random = randoms(3);
  const oneWay = () => oneWayMs + jitterMs * (2 * random() - 1);
  const spreads = Array.from({ length: 40 }, () => {
    const way = new RoundTrips();
    // The round trip that opens the connection is used by the handshake.
    for (let handshake = 0; handshake < 32; handshake++) {
      way.add(2 * oneWayMs + oneWay() + oneWay(), (2 * oneWayMs + oneWay() + oneWay()) / 2);
    }
    return way.spreadMs;
  });
  const usual = spreads.toSorted((a, b) => a - b)[20]!;
  expect(usual + LEAST_MARGIN_MS).toBeGreaterThanOrEqual(2 * jitterMs);
  expect(usual).toBeLessThanOrEqual(atMostMs);
});

test("a handshake that this process was too busy for says nothing about the latency", () => {
  const way = new RoundTrips();
  for (let handshake = 0; handshake < 32; handshake++) way.add(handshake % 16 === 0 ? 900 : 80);
  expect(way.spreadMs).toBeLessThan(30);
});
