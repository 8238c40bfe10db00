/** Collects calls of one kind, so that those of many keys reach the control plane in one statement. */
import type { QuotaClock } from "./clock";

export interface Batch<T, R> {
  /**
   * Sends `item` with others, at `latestAt` on the clock at the latest: at once if that is past.
   *
   * @param isWanted false if it is not to be sent after all; the result is null then
   */
  add(item: T, latestAt: number, isWanted?: () => boolean): Promise<R | null>;
  /** When the last statement was sent, ms on the clock. */
  readonly sentAt: number;
}

interface Pending<T, R> {
  item: T;
  isWanted: () => boolean;
  resolve(result: R | null): void;
  reject(error: unknown): void;
}

/**
 * @param most the largest number of items in one statement
 * @param send sends these items, and returns a result for each, in order
 */
export function createBatch<T, R>(
  clock: QuotaClock,
  most: number,
  send: (items: T[]) => Promise<R[]>,
): Batch<T, R> {
  let pending: Pending<T, R>[] = [];
  let flushAt = Infinity;
  let sentAt = -Infinity;
  let cancelAlarm = () => {};

  function flush(): void {
    cancelAlarm();
    flushAt = Infinity;
    sentAt = clock.now();
    const all: Pending<T, R>[] = [];
    for (const one of pending) {
      if (one.isWanted()) all.push(one);
      else one.resolve(null);
    }
    pending = [];
    for (let from = 0; from < all.length; from += most) void settle(all.slice(from, from + most));
  }

  async function settle(some: Pending<T, R>[]): Promise<void> {
    try {
      const results = await send(some.map(({ item }) => item));
      for (const [index, { resolve }] of some.entries()) resolve(results[index]!);
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }

  return {
    add(item, latestAt, isWanted = () => true) {
      return new Promise((resolve, reject) => {
        pending.push({ item, isWanted, resolve, reject });
        if (latestAt >= flushAt) return;
        cancelAlarm();
        flushAt = latestAt;
        if (latestAt > clock.now()) {
          cancelAlarm = clock.at(latestAt, flush);
          return;
        }
        // Items that are added in the same turn of the event loop share the statement.
        flushAt = -Infinity;
        cancelAlarm = () => {};
        process.nextTick(flush);
      });
    },
    get sentAt() {
      return sentAt;
    },
  };
}
