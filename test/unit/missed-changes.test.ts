import { expect, test } from "vitest";
import { Misses } from "../../core/sync/state";

const SECOND = 1000;

test("what a sweep found and no read of the feed names within ten seconds was missed", () => {
  const misses = new Misses();
  misses.found("tblA", ["rec1", "rec2"], 100 * SECOND);
  expect(misses.readToEnd(105 * SECOND)).toBe(0);
  misses.named("tblA", ["rec2"], 106 * SECOND);
  expect(misses.readToEnd(109 * SECOND)).toBe(0);
  expect(misses.readToEnd(110 * SECOND)).toBe(1);
  expect(misses.readToEnd(200 * SECOND)).toBe(0);
});

test("what was named not long before a sweep found it was not missed; long before, it was", () => {
  const misses = new Misses();
  misses.named("tblA", ["rec1", "rec2"], 0);
  misses.found("tblA", ["rec1"], 50 * SECOND);
  misses.named("tblB", ["rec9"], 61 * SECOND);
  misses.named("tblB", ["rec9"], 130 * SECOND);
  misses.found("tblA", ["rec2"], 131 * SECOND);
  misses.found("tblC", ["rec9"], 131 * SECOND);
  expect(misses.readToEnd(500 * SECOND)).toBe(2);
});
