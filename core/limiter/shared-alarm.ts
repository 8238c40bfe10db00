/** One alarm for work of many keys that is due at about the same time: what it sends shares a statement. */
import type { QuotaClock } from "./clock";

/**
 * @param withinMs how long after it was added work begins, at most
 * @returns a function that adds work (a function of its own each time), and returns one that cancels it
 */
export function createSharedAlarm(clock: QuotaClock, withinMs: number): (work: () => void) => () => void {
  const due = new Set<() => void>();
  let isSet = false;

  function ring(): void {
    isSet = false;
    const all = [...due];
    due.clear();
    for (const work of all) work();
  }

  return (work) => {
    due.add(work);
    if (!isSet) {
      isSet = true;
      clock.at(clock.now() + withinMs, ring);
    }
    return () => due.delete(work);
  };
}
