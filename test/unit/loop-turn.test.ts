/** Parts of large bodies: each in a turn of the event loop of its own, so that others come in between. */
import { expect, test } from "vitest";
import { loopTurn } from "../../core/async";

test("each part is taken in a turn of its own, in order", async () => {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const taken: { part: number; turn: number }[] = [];
  await Promise.all(
    Array.from({ length: 20 }, (_, part) => loopTurn().then(() => taken.push({ part, turn }))),
  );
  isOver = true;
  expect(taken.map(({ part }) => part)).toEqual(Array.from({ length: 20 }, (_, part) => part));
  expect(new Set(taken.map((one) => one.turn)).size).toBe(20);
});
