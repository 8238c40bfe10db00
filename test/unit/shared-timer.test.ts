/** One timer of the limiter for the work of many keys. */
import { expect, test } from "vitest";
import { createSharedTimer } from "../../core/limiter/shared-timer";
import { VirtualClock } from "../support/quota-simulation";

test("what was added since the timer last fired runs together, and what was cancelled does not", async () => {
  const clock = new VirtualClock();
  const timers: number[] = [];
  const counted = {
    now: clock.now,
    at(atMs: number, wake: () => void) {
      timers.push(atMs);
      return clock.at(atMs, wake);
    },
  };
  const add = createSharedTimer(counted, 25);
  const ran: { name: string; at: number }[] = [];
  const work = (name: string) => () => void ran.push({ name, at: clock.now() });
  add(work("first"));
  clock.at(20, () => void add(work("second")));
  const cancel = add(work("cancelled"));
  clock.at(24, cancel);
  // Work may add work for the next time.
  clock.at(100, () => void add(() => void add(work("again"))));
  await clock.run(200);
  expect(ran).toEqual([
    { name: "first", at: 25 },
    { name: "second", at: 25 },
    { name: "again", at: 150 },
  ]);
  expect(timers).toEqual([25, 125, 150]);
});
