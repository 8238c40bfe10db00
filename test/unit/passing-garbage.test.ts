/**
 * What each request passes through must not keep it alive: in the runtime's Set and Map, everything that was ever in them
 * survives collections of young objects (docs/performance.md).
 */
import { edenGC, fullGC } from "bun:jsc";
import { expect, test } from "vitest";
import { offAbort, onAbort } from "../../core/async";

const AT_ONCE = 400;
const ROUNDS = 5;
const IN_ROUND = 2000;

/** Begins an operation, and returns a function that ends it. */
type Begin = (callback: () => void) => () => void;

const { signal } = new AbortController();
const passages: Record<string, Begin> = {
  timers(callback) {
    const timer = setTimeout(callback, 60_000).unref();
    return () => clearTimeout(timer);
  },
  aborts(callback) {
    onAbort(signal, callback);
    return () => offAbort(signal, callback);
  },
};

test.each(Object.keys(passages))(
  "%s: an operation that has ended is garbage, also while others have not",
  async (name) => {
    const begin = passages[name]!;
    const running: (() => void)[] = [];
    const begun: WeakRef<() => void>[] = [];
    const beginOne = () => {
      const bytes = new Array(10).fill(begun.length);
      const callback = () => void bytes.length;
      begun.push(new WeakRef(callback));
      running.push(begin(callback));
    };
    for (let index = 0; index < AT_ONCE; index++) beginOne();
    fullGC();
    for (let round = 0; round < ROUNDS; round++) {
      for (let index = 0; index < IN_ROUND; index++) {
        beginOne();
        // In no particular order, as answers come.
        const [end] = running.splice((index * 7) % running.length, 1);
        end!();
      }
      // A WeakRef holds its object until the end of its turn.
      await new Promise((resolve) => setImmediate(resolve));
      edenGC();
    }
    const alive = begun.filter((one) => one.deref() !== undefined).length;
    for (const end of running) end();
    // Those that had begun when a collection ran, but no others.
    expect(alive).toBeLessThanOrEqual((ROUNDS + 1) * AT_ONCE * 1.2);
  },
);
