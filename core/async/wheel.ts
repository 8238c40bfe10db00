/**
 * Waits of loops that look now and then whether there is something to do: one timer of the process wakes all of them,
 * however many bases it holds. A wait ends up to TICK_MS late, and at once when its signal aborts.
 */
import { BasetideError } from "../errors";

const TICK_MS = 250;

interface Waiter {
  resolve(): void;
  reject(error: unknown): void;
}

/** By the tick that ends their wait. A waiter that was aborted stays here until then, but not in the set of its signal. */
const due = new Map<number, { waiter: Waiter; signal: AbortSignal }[]>();
/** One listener for each signal, for as long as the signal exists. */
const bySignal = new WeakMap<AbortSignal, Set<Waiter>>();
let timer: ReturnType<typeof setInterval> | undefined;

/**
 * Waits at least `ms` milliseconds.
 *
 * @throws BasetideError `sync_stopped` as soon as `signal` aborts
 */
export function waitCoarsely(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new BasetideError("sync_stopped"));
    const waiter = { resolve, reject };
    waitersOf(signal).add(waiter);
    const tick = tickOf(performance.now() + ms) + 1;
    const others = due.get(tick);
    if (others) others.push({ waiter, signal });
    else due.set(tick, [{ waiter, signal }]);
    timer ??= setInterval(endTicks, TICK_MS);
  });
}

/** @param atMs performance.now() */
function tickOf(atMs: number): number {
  return Math.floor(atMs / TICK_MS);
}

/** Ends the waits of all ticks until now: a busy process may have missed some. There are few ticks at any time. */
function endTicks(): void {
  const now = tickOf(performance.now());
  for (const [tick, waits] of due) {
    if (tick > now) continue;
    due.delete(tick);
    for (const { waiter, signal } of waits) if (bySignal.get(signal)?.delete(waiter)) waiter.resolve();
  }
  if (due.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function waitersOf(signal: AbortSignal): Set<Waiter> {
  const known = bySignal.get(signal);
  if (known) return known;
  const waiters = new Set<Waiter>();
  bySignal.set(signal, waiters);
  const stop = () => {
    for (const { reject } of waiters) reject(new BasetideError("sync_stopped"));
    waiters.clear();
  };
  signal.addEventListener("abort", stop, { once: true });
  return waiters;
}
