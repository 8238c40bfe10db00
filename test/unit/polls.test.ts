/** When the polls of open pages read what is expensive. */
import { expect, test } from "vitest";
import { isFreshList } from "../../views/base/list";
import { needsSlowFacts } from "../../views/base/overview";

const now = new Date("2026-11-22T12:00:00Z");
const ago = (ms: number) => now.getTime() - ms;

test("a long list is drawn again when it is 8 s old, and whenever a request does not say how old it is", () => {
  const answers = [0, 2000, 7999, 8000, -5].map((ms) => isFreshList(String(ago(ms)), now));
  expect(answers).toEqual([true, true, true, false, false]);
  expect([undefined, "", "x", ["1"]].map((at) => isFreshList(at, now))).toEqual([false, false, false, false]);
});

test("a poll of the overview reads slow facts when the page's are 7 s old or of unknown age", () => {
  const answers = [0, 6999, 7000, -5].map((ms) => needsSlowFacts(ago(ms), now));
  expect(answers).toEqual([false, false, true, true]);
  expect(needsSlowFacts(Number.NaN, now)).toBe(true);
});
