/** What a process knows of revoked reservations, from answers that come late or never. */
import { expect, test } from "vitest";
import { FIRM_MS, type Reservation } from "../../core/limiter/backend";
import { watchRevocations } from "../../core/limiter/revocations";
import { VirtualClock } from "../support/quota-simulation";

/** A reservation that begins at this time, on a server whose clock is the process's. */
function beginningAt(at: number, revocations: number): Reservation {
  return { at, until: at + 5, arrivesBy: at + 20, marginMs: 20, revocations };
}

test("a reservation is valid once an answer shows that it can no longer be revoked, until something is revoked", () => {
  const revocations = watchRevocations(new VirtualClock(), async () => {});
  revocations.learn(7, 0);
  const reservation = beginningAt(300, 7);
  revocations.learn(7, 300 - FIRM_MS - 1);
  expect(revocations.isValid(reservation)).toBe(false);
  revocations.learn(7, 300 - FIRM_MS);
  expect(revocations.isValid(reservation)).toBe(true);
  // An answer that was overtaken changes nothing.
  revocations.learn(6, 100);
  expect(revocations.isValid(reservation)).toBe(true);
  revocations.learn(8, 100);
  expect(revocations.isValid(reservation)).toBe(false);
});

test("while reservations are outstanding, an answer is never much older than half of the time that they are firm", async () => {
  const clock = new VirtualClock();
  const asked: number[] = [];
  const revocations = watchRevocations(clock, async () => {
    asked.push(clock.now());
    revocations.learn(1, clock.now());
  });
  revocations.learn(1, 0);
  revocations.outstanding(200);
  // Another answer comes meanwhile.
  clock.at(70, () => revocations.learn(1, 70));
  await clock.run(1000);
  expect(asked).toEqual([30, 60, 100, 130, 160, 190]);
});

test("after a failed call nothing is valid, and the count is no longer asked for", async () => {
  const clock = new VirtualClock();
  let asked = 0;
  const revocations = watchRevocations(clock, async () => {
    asked++;
    revocations.lose();
    throw new Error("no answer");
  });
  revocations.learn(1, 290);
  revocations.outstanding(500);
  await clock.run(1000);
  expect(asked).toBe(1);
  expect(revocations.isValid(beginningAt(300, 1))).toBe(false);
});

test("they are worthwhile only for a process with many calls, not after a revocation, and not far from the control plane", () => {
  const clock = new VirtualClock();
  const revocations = watchRevocations(clock, async () => {});
  const calls = (perSecond: number) => {
    for (let call = 0; call < 2 * perSecond; call++) {
      clock.stall(1000 / perSecond);
      revocations.countCall();
    }
  };
  revocations.learn(1, 0);
  calls(40);
  expect(revocations.isSteady).toBe(false);
  calls(60);
  expect(revocations.isSteady).toBe(true);
  revocations.learn(2, clock.now());
  expect(revocations.isSteady).toBe(false);
  clock.stall(1000);
  expect(revocations.isSteady).toBe(true);
  for (let late = 0; late < 3; late++) {
    clock.stall(100);
    // A moment's delay concerns many.
    for (let count = 0; count < 50; count++)
      revocations.isValid(beginningAt(clock.now() + FIRM_MS + 1000, 2));
  }
  expect(revocations.isSteady).toBe(false);
});
