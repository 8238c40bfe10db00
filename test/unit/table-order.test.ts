import fc from "fast-check";
import { expect, test } from "vitest";
import type { RateLimiter } from "../../core/limiter";
import type { Reader } from "../../core/sync/engine";
import { TableOrder } from "../../core/sync/engine/table-order";

/** Reads tables of these sizes (pages) through one order. @returns their indices, in the order in which they end */
async function endOrder(sizes: number[], known: number[] = sizes.map(() => 0)): Promise<number[]> {
  let granted = 0;
  const acquireSync: RateLimiter["acquireSync"] = async () => {
    granted++;
    await Bun.sleep(0);
    return undefined;
  };
  const reader = { limiter: { acquireSync }, stop: new AbortController().signal } as unknown as Reader;
  const records = known.map((pages, index) => [String(index), { records: pages * 100, error: 0 }] as const);
  const order = new TableOrder(reader, new Map(records));
  const ended: number[] = [];
  await Promise.all(
    sizes.map(async (pages, index) => {
      const { limiter, stop } = order.readerFor(String(index), reader);
      for (let page = 0; page < pages; page++) await limiter.acquireSync("fake:app1", 3, stop);
      ended.push(index);
    }),
  );
  expect(granted).toBe(sizes.reduce((sum, pages) => sum + pages, 0));
  return ended;
}

const sizes = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 2, maxLength: 5 });

test("tables of unknown sizes end in the order of their sizes", async () => {
  expect(await endOrder([60, 24, 16])).toEqual([2, 1, 0]);
  await fc.assert(
    fc.asyncProperty(sizes, async (pages) => {
      // Those that differ by a page may end in any order.
      const apart = pages.map((one) => one * 3);
      const expected = apart.map((_, index) => index).toSorted((a, b) => apart[a]! - apart[b]!);
      expect(await endOrder(apart)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});

test("of tables of known sizes, small ones are read first", async () => {
  expect(await endOrder([60, 24, 16], [60, 24, 16])).toEqual([2, 1, 0]);
});
