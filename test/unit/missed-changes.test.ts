import { expect, test } from "vitest";
import { MissedChanges } from "../../core/sync/state";

const SECOND = 1000;

test("what a sweep found and no read of the feed reports within twenty seconds was missed", () => {
  const missedChanges = new MissedChanges();
  missedChanges.found("tblA", ["rec1", "rec2"], 100 * SECOND);
  missedChanges.found("tblB", ["rec3", "rec4"], 102 * SECOND, "comparison");
  expect(missedChanges.judgedInMs(105 * SECOND)).toBe(17 * SECOND);
  expect(missedChanges.readToEnd(105 * SECOND)).toEqual({ sweep: 0, comparison: 0 });
  missedChanges.named("tblA", ["rec2"], 106 * SECOND);
  missedChanges.named("tblB", ["rec4"], 106 * SECOND);
  expect(missedChanges.readToEnd(119 * SECOND)).toEqual({ sweep: 0, comparison: 0 });
  expect(missedChanges.readToEnd(120 * SECOND)).toEqual({ sweep: 1, comparison: 0 });
  expect(missedChanges.readToEnd(122 * SECOND)).toEqual({ sweep: 0, comparison: 1 });
  expect([missedChanges.isSettled, missedChanges.judgedInMs(200 * SECOND)]).toEqual([true, Infinity]);
});

test("what was reported shortly before a sweep found it was not missed; long before, it was", () => {
  const missedChanges = new MissedChanges();
  missedChanges.named("tblA", ["rec1", "rec2"], 0);
  missedChanges.found("tblA", ["rec1"], 50 * SECOND);
  missedChanges.named("tblB", ["rec9"], 61 * SECOND);
  missedChanges.named("tblB", ["rec9"], 130 * SECOND);
  missedChanges.found("tblA", ["rec2"], 131 * SECOND);
  missedChanges.found("tblC", ["rec9"], 131 * SECOND);
  expect(missedChanges.readToEnd(500 * SECOND).sweep).toBe(2);
});

test("what was reported is forgotten after two minutes, also if the feed reports nothing more", () => {
  const missedChanges = new MissedChanges();
  for (let second = 0; second < 60; second++) missedChanges.named("tblA", [`rec${second}`], second * SECOND);
  expect(missedChanges.size).toBe(60);
  // Reads of the feed without changes, and a base at rest that reads nothing.
  missedChanges.readToEnd(61 * SECOND);
  missedChanges.forgetOld(122 * SECOND);
  expect(missedChanges.size).toBe(0);
});
