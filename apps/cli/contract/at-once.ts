/** Does the same for many items, some at a time. */

/** Requests at the same time, where each base needs one. */
const AT_ONCE = 8;

/** @returns each item with its result, in the order of the items */
export async function eachAtOnce<Item, Value>(
  items: readonly Item[],
  work: (item: Item) => Promise<Value>,
): Promise<[Item, Value][]> {
  const results: [Item, Value][] = [];
  const waiting = items.entries();
  const one = async () => {
    for (const [index, item] of waiting) results[index] = [item, await work(item)];
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return results;
}
