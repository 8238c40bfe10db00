/** Results that the console keeps for a short time. */
import { expect, test } from "vitest";
import { TimedCache } from "../../apps/console/timed-cache";

test("a result is computed once, failures and null are not kept, and the oldest give way", async () => {
  const cache = new TimedCache<number>({ keptMs: 60_000, most: 2 });
  let computed = 0;
  const count = (key: string) => cache.get(key, async () => ++computed);
  expect(await Promise.all([count("a"), count("a"), count("b")])).toEqual([1, 1, 2]);
  await expect(cache.get("c", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await count("c")).toBe(3);
  expect(await count("b")).toBe(2);
  expect(await count("a")).toBe(4);
  const empty = new TimedCache<number | null>({ most: 2 });
  expect([await empty.get("a", async () => null), await empty.get("a", async () => 5)]).toEqual([null, 5]);
  expect(await empty.get("a", async () => 6)).toBe(5);
  empty.clear();
  expect(await empty.get("a", async () => 6)).toBe(6);
  const brief = new TimedCache<number>({ keptMs: 0, most: 2 });
  expect([await brief.get("a", async () => 1), await brief.get("a", async () => 2)]).toEqual([1, 2]);
});
