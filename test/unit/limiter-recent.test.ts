/** What the limiter keeps of each key. */
import { expect, test } from "vitest";
import { Recent } from "../../core/limiter/recent";

const BASES = 5000;

test("entries that are used are kept, however many there are; of others, those that are not idle", () => {
  let now = 0;
  let created = 0;
  const recent = new Recent<{ isIdle: boolean }>(() => now);
  const use = (name: string, isIdle = true) =>
    recent.get(name, () => {
      created++;
      return { isIdle };
    });
  const left = use("left");
  const busy = use("busy", false);
  for (let minute = 0; minute < 5; minute++) {
    now += 61_000;
    for (let base = 0; base < BASES; base++) use(`base ${base}`);
  }
  expect(created).toBe(2 + BASES);
  expect(use("busy")).toBe(busy);
  expect(use("left")).not.toBe(left);
});
