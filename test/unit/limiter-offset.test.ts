/** The control plane's clock as a process knows it: reservations are used later by the uncertainty. */
import { expect, test } from "vitest";
import type { Db } from "../../core/context";
import { controlPlane } from "../../core/limiter/control-plane";
import { VirtualClock } from "../support/quota-simulation";

/** How far the server's clock is ahead of the process's, ms. */
const AHEAD_MS = 5_000_000;

/** A control plane whose n-th answer takes this long on its way back, ms; and the first reservation that it grants. */
async function firstReservation(backMs: (answer: number) => number, forMs = 60_000) {
  const clock = new VirtualClock();
  let answers = 0;
  const db = (() => {
    const now = clock.now() + AHEAD_MS;
    const row = { now, asked_at: now, reservations: [now + 20], margin: 20, next_at: now };
    return clock.sleep(backMs(++answers)).then(() => [row]);
  }) as unknown as Db;
  const backend = controlPlane(db, clock, 1000, () => {}).backend("key", "client", 5);
  const taken = backend.acquire([1000], [], { delayMs: 0, spreadMs: 0, dropMs: 0 });
  taken.catch(() => {});
  await clock.run(forMs);
  const { reservations } = await taken;
  return { answers, lateMs: reservations[0]!.at + AHEAD_MS - (reservations[0]!.arrivesBy - 20) };
}

test("three answers are enough if they are fast", async () => {
  expect(await firstReservation(() => 2)).toEqual({ answers: 4, lateMs: 2 });
});

test("I4: while answers are slow, more are awaited, until one was fast", async () => {
  expect(await firstReservation((answer) => (answer === 7 ? 3 : 60))).toEqual({ answers: 8, lateMs: 3 });
});

test("if all answers are slow, the fastest is used", async () => {
  const { answers, lateMs } = await firstReservation((answer) => (answer === 2 ? 40 : 200));
  expect(lateMs).toBe(40);
  expect(answers).toBeLessThan(10);
});

test("an answer that was on its way while the process stood still grants nothing: its times are of long ago", async () => {
  const standstill = firstReservation((answer) => (answer === 4 ? 8 * 3600_000 : 2), 9 * 3600_000);
  await expect(standstill).rejects.toMatchObject({ code: "control_unavailable" });
});

test("bases that start together share the answers", async () => {
  const clock = new VirtualClock();
  let answers = 0;
  const db = (() => {
    answers++;
    const now = clock.now();
    const row = { now, asked_at: now, reservations: [now + 20], margin: 20, next_at: now };
    return clock.sleep(2).then(() => Array.from({ length: 40 }, () => row));
  }) as unknown as Db;
  const control = controlPlane(db, clock, 1000, () => {});
  const taken = Array.from({ length: 40 }, (_, nth) =>
    control.backend(`key ${nth}`, "sync", 5).acquire([1000], [], { delayMs: 0, spreadMs: 0, dropMs: 0 }),
  );
  await clock.run(60_000);
  await Promise.all(taken);
  expect(answers).toBe(4);
});

/**
 * Requests a reservation every 50 ms, from a server that fails between the two times.
 *
 * @returns when each was granted, ms
 */
async function reservations({ isPromoted, awayMs }: { isPromoted: boolean; awayMs: [number, number] }) {
  const clock = new VirtualClock();
  const start = clock.now();
  const passedMs = () => clock.now() - start;
  const db = (() => {
    const now = clock.now();
    if (passedMs() >= awayMs[0] && passedMs() < awayMs[1]) return Promise.reject(new Error("away"));
    const row = {
      now,
      is_promoted: isPromoted,
      asked_at: now,
      reservations: [now + 20],
      margin: 20,
      next_at: now,
    };
    return Promise.resolve([row]);
  }) as unknown as Db;
  const backend = controlPlane(db, clock, 1000, () => {}).backend("key", "sync", 5);
  const had: number[] = [];
  const asking = (async () => {
    while (passedMs() < 20_000) {
      const { reservations } = await backend
        .acquire([1000], [], { delayMs: 0, spreadMs: 0, dropMs: 0 })
        .catch(() => ({ reservations: [] }));
      if (reservations[0]) had.push(passedMs());
      await clock.sleep(50);
    }
  })();
  await clock.run(30_000);
  await asking;
  return had;
}

test("I4: at a promoted server, nothing is reserved before the writes that it may lack have passed: at first, and after a failure", async () => {
  const had = await reservations({ isPromoted: true, awayMs: [8000, 9000] });
  expect(had[0]).toBeGreaterThanOrEqual(2350);
  expect(had[0]).toBeLessThan(2550);
  const again = had.find((at) => at >= 8000)!;
  expect(again).toBeGreaterThanOrEqual(9000 + 2350);
  expect(again).toBeLessThan(9000 + 2900);
});

test("at any other server, reservations are granted at once", async () => {
  const had = await reservations({ isPromoted: false, awayMs: [8000, 9000] });
  expect(had[0]).toBe(0);
  expect(had.find((at) => at >= 8000)).toBeLessThan(9000 + 700);
});
