/**
 * A clock for limits on a busy machine: it counts the time in which this process could run. A tick that comes late, since
 * the process had no CPU, counts as one tick.
 */
const TICK_MS = 20;

export interface BusyClock extends Disposable {
  /** Time since the start of the clock in which the process could run, ms. */
  now(): number;
}

export function busyClock(): BusyClock {
  let ticks = 0;
  const timer = setInterval(() => ticks++, TICK_MS);
  return {
    now: () => ticks * TICK_MS,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
