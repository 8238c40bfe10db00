/** Results that the console keeps for a short time. */
import { expect, test } from "vitest";
import { TimedCache } from "../../apps/console/shape-cache";

test("a result is computed once, failures are not kept, and the oldest give way", async () => {
  const cache = new TimedCache<number>({ keptMs: 60_000, most: 2 });
  let computed = 0;
  const count = (key: string) => cache.get(key, async () => ++computed);
  expect(await Promise.all([count("a"), count("a"), count("b")])).toEqual([1, 1, 2]);
  await expect(cache.get("c", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(await count("c")).toBe(3);
  expect(await count("b")).toBe(2);
  expect(await count("a")).toBe(4);
  const brief = new TimedCache<number>({ keptMs: 0, most: 2 });
  expect([await brief.get("a", async () => 1), await brief.get("a", async () => 2)]).toEqual([1, 2]);
});
