/** Items of several keys in one statement, on a virtual clock. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createBatch } from "../../core/limiter/batch";
import { VirtualClock } from "../support/quota-simulation";

test("each item is sent once, in time, and gets its own result", async () => {
  const adds = fc.array(
    fc.record({ pauseMs: fc.integer({ min: 0, max: 30 }), slackMs: fc.integer({ min: -5, max: 40 }) }),
    { minLength: 1, maxLength: 60 },
  );
  await fc.assert(
    fc.asyncProperty(adds, fc.integer({ min: 1, max: 7 }), async (history, most) => {
      const clock = new VirtualClock();
      const statements: number[][] = [];
      const sentAt = new Map<number, number>();
      const batch = createBatch(clock, most, async (items: number[]) => {
        statements.push(items);
        for (const item of items) sentAt.set(item, clock.now());
        return items.map((item) => item * 2);
      });
      const answers: Promise<number | null>[] = [];
      const latest: number[] = [];
      let at = 0;
      for (const [index, { pauseMs, slackMs }] of history.entries()) {
        at += pauseMs;
        clock.at(at, () => {
          latest[index] = Math.max(clock.now(), clock.now() + slackMs);
          answers[index] = batch.add(index, clock.now() + slackMs);
        });
      }
      await clock.run(at + 1000);
      expect(await Promise.all(answers)).toEqual(history.map((_, index) => index * 2));
      expect(statements.flat().toSorted((a, b) => a - b)).toEqual([...history.keys()]);
      for (const [index, latestAt] of latest.entries())
        expect(sentAt.get(index)).toBeLessThanOrEqual(latestAt);
      expect(Math.max(...statements.map(({ length }) => length))).toBeLessThanOrEqual(most);
    }),
  );
});

test("items that may wait are sent together, when the first of them must be", async () => {
  const clock = new VirtualClock();
  const statements: { items: string[]; at: number }[] = [];
  const batch = createBatch(clock, 50, async (items: string[]) => {
    statements.push({ items, at: clock.now() });
    return items;
  });
  for (const [item, latestAt] of Object.entries({ a: 30, b: 10, c: 50 })) void batch.add(item, latestAt);
  await clock.run(100);
  expect(statements).toEqual([{ items: ["a", "b", "c"], at: 10 }]);
});

test("an item that is no longer wanted when the statement is sent is left out", async () => {
  const clock = new VirtualClock();
  const sent: string[][] = [];
  const batch = createBatch(clock, 50, async (items: string[]) => {
    sent.push(items);
    return items;
  });
  let isWanted = true;
  const left = batch.add("left", 20, () => isWanted);
  const kept = batch.add("kept", 20);
  clock.at(10, () => (isWanted = false));
  await clock.run(100);
  expect([await left, await kept, sent]).toEqual([null, "kept", [["kept"]]]);
});

test("a statement that fails fails its own items only", async () => {
  const clock = new VirtualClock();
  let statements = 0;
  const batch = createBatch(clock, 2, async (items: number[]) => {
    if (++statements === 1) throw new Error("away");
    return items;
  });
  const all = [1, 2, 3].map((item) => batch.add(item, 0).catch((error: Error) => error.message));
  expect(await Promise.all(all)).toEqual(["away", "away", 3]);
});
