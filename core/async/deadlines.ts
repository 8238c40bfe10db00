/**
 * One timer for operations that nearly always end long before their deadline, as requests do: setting and clearing a
 * timer for each costs as much as parsing its answer's head. Not the wheel of coarse waits (wheel.ts), which keeps a wait that
 * was canceled until its time: with 3,000 requests a second, these would be 90,000.
 */

interface Deadline {
  at: number;
  callback: () => void;
}

const pending = new Set<Deadline>();
let timer: ReturnType<typeof setTimeout> | undefined;
/** When the timer fires (performance.now()). */
let firesAt = Infinity;

/**
 * Calls `callback` after `ms`, unless the returned function is called before. Does not keep the process alive.
 *
 * @param callback must not throw
 */
export function beforeDeadline(ms: number, callback: () => void): () => void {
  const deadline = { at: performance.now() + ms, callback };
  pending.add(deadline);
  if (deadline.at < firesAt) fireAt(deadline.at);
  return () => void pending.delete(deadline);
}

function fireAt(at: number): void {
  clearTimeout(timer);
  firesAt = at;
  timer = setTimeout(fire, Math.max(0, at - performance.now()));
  timer.unref();
}

/** Calls those that are due, and waits for the earliest of the others. */
function fire(): void {
  firesAt = Infinity;
  const now = performance.now();
  let next = Infinity;
  for (const deadline of pending) {
    if (deadline.at > now) next = Math.min(next, deadline.at);
    else if (pending.delete(deadline)) deadline.callback();
  }
  if (next < firesAt) fireAt(next);
}
