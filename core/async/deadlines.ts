/**
 * One timer for operations that nearly always end long before their deadline, as requests do: setting and clearing a
 * timer for each costs as much as parsing its answer's head.
 */

interface Deadline {
  readonly at: number;
  readonly callback: () => void;
  /** Its index in `pending`; -1 once it is over. */
  place: number;
}

/** Not a Set: see "Sets and Maps that many requests pass through" in docs/performance.md. */
const pending: Deadline[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
/** When the timer fires (performance.now()). */
let firesAt = Infinity;

/**
 * Calls `callback` after `ms`, unless the returned function is called before. Does not keep the process alive.
 *
 * @param callback must not throw
 */
export function beforeDeadline(ms: number, callback: () => void): () => void {
  const deadline = { at: performance.now() + ms, callback, place: pending.length };
  pending.push(deadline);
  if (deadline.at < firesAt) fireAt(deadline.at);
  return () => void end(deadline);
}

/** Removes it from `pending`. Returns false if it was over before. */
function end(deadline: Deadline): boolean {
  const { place } = deadline;
  if (place < 0) return false;
  // The last one takes its place: that is faster than moving all behind it.
  const last = pending.pop()!;
  if (last !== deadline) {
    pending[place] = last;
    last.place = place;
  }
  deadline.place = -1;
  return true;
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
  for (const deadline of pending.filter(({ at }) => at <= now)) if (end(deadline)) deadline.callback();
  const next = pending.reduce((earliest, { at }) => Math.min(earliest, at), Infinity);
  if (next < firesAt) fireAt(next);
}
