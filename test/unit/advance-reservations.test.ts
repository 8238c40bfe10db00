/** What a queue has in advance, when one of its requests was sent late. */
import { expect, test } from "vitest";
import { AdvanceReservations } from "../../core/limiter/advance-reservations";
import { reservationOf } from "../../core/limiter/backend";
import { VirtualClock } from "../support/quota-simulation";

const MARGIN = { delayMs: 0, spreadMs: 0, dropMs: 0 };
const reservations = (...ats: number[]) => ats.map((at) => reservationOf(at + 20, 20, 0, 0));

test("I4: voiding concerns what is there, what a request has taken, and what has been asked for", () => {
  const returned: number[] = [];
  const backend = { spacingMs: 333, isWorthwhile: true, isValid: () => true };
  const advance = new AdvanceReservations(
    backend,
    new VirtualClock(),
    (arrivesBy) => void returned.push(...arrivesBy),
  );
  advance.add(reservations(100, 200), MARGIN, advance.generation);
  const taken = advance.take(0)!;
  const askedBefore = advance.generation;
  expect(advance.isUsable(taken, undefined)).toBe(true);
  expect(advance.void()).toEqual([220]);
  expect([advance.isUsable(taken, undefined), advance.take(0)]).toEqual([false, undefined]);
  advance.add(reservations(300), MARGIN, askedBefore);
  expect([returned, advance.take(0)]).toEqual([[320], undefined]);
  advance.add(reservations(400), MARGIN, advance.generation);
  const next = advance.take(0)!;
  expect([next.at, advance.isUsable(next, undefined)]).toEqual([400, true]);
});
