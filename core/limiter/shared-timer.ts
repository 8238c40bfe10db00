/** One timer for the work of many keys that is due at about the same time: what it sends shares a statement. */
import type { QuotaClock } from "./clock";

/**
 * @param withinMs work begins this long after it was added, at most
 * @returns a function that adds work, and returns one that cancels it
 */
export function createSharedTimer(clock: QuotaClock, withinMs: number): (work: () => void) => () => void {
  /** Not a Set: see "Sets and Maps that many requests pass through" in docs/performance.md. */
  let due: { work: () => void }[] = [];

  function fire(): void {
    const all = due;
    due = [];
    for (const { work } of all) work();
  }

  return (work) => {
    const one = { work };
    if (due.push(one) === 1) clock.at(clock.now() + withinMs, fire);
    return () => {
      one.work = () => {};
    };
  };
}
