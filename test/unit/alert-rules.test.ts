/** When something is worth an alert, over any history of a base. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type BaseCondition,
  type Health,
  QUIET_MS,
  SETTLE_MS,
  stepBudget,
  stepHealth,
  UNSEEN,
} from "../../core/alerts/rules";

const MINUTE_MS = 60_000;
const BEGIN = Date.UTC(2026, 10, 20);
const fresh = (): Health => ({ red: UNSEEN, needs_attention: UNSEEN, recovered: UNSEEN });

interface Moment {
  condition: BaseCondition;
  afterMs: number;
}

const history = fc.array(
  fc.record({
    condition: fc.constantFrom<BaseCondition>("well", "red", "needs_attention", "frozen"),
    afterMs: fc.oneof(
      fc.integer({ min: 1, max: 3 * MINUTE_MS }),
      fc.integer({ min: 1, max: 90 * MINUTE_MS }),
    ),
  }),
  { maxLength: 60 },
);

/** The messages, in order, when the state is evaluated at intervals between the moments. */
function toldOf(moments: Moment[], everyMs = 15_000) {
  const told: { kind: string; at: number; times: number }[] = [];
  let health = fresh();
  let at = BEGIN;
  for (const { condition, afterMs } of moments) {
    for (const end = at + afterMs; at < end; at += everyMs) {
      const { after, tell } = stepHealth(health, condition, new Date(at));
      health = after;
      if (tell) told.push({ kind: tell.kind, at, times: tell.times });
    }
  }
  return told;
}

test("A1: no kind is sent twice for a base within the hour", () => {
  fc.assert(
    fc.property(history, (moments) => {
      const told = toldOf(moments);
      for (const [index, { kind, at }] of told.entries()) {
        const before = told.slice(0, index).findLast((one) => one.kind === kind);
        if (before) expect(at - before.at).toBeGreaterThanOrEqual(QUIET_MS);
      }
    }),
    { numRuns: 300 },
  );
});

test("A2: recovered follows a failure, and a failure follows another state", () => {
  fc.assert(
    fc.property(history, (moments) => {
      let believed = "recovered";
      for (const { kind } of toldOf(moments)) {
        expect(kind).not.toBe(believed);
        believed = kind;
      }
    }),
    { numRuns: 300 },
  );
});

test("A3: once nothing changes any more, the last message is the current state", () => {
  const last = fc.constantFrom<BaseCondition>("well", "red", "needs_attention");
  fc.assert(
    fc.property(history, last, (moments, condition) => {
      const quiet = { condition, afterMs: QUIET_MS + SETTLE_MS + MINUTE_MS };
      const kind = toldOf([...moments, quiet]).at(-1)?.kind ?? "recovered";
      expect(kind).toBe(condition === "well" ? "recovered" : condition);
    }),
    { numRuns: 300 },
  );
});

test("a state that lasts for less than two minutes is never sent", () => {
  const flips = Array.from({ length: 200 }, (_, index) => ({
    condition: index % 2 === 0 ? ("red" as const) : ("well" as const),
    afterMs: SETTLE_MS - 15_000,
  }));
  expect(toldOf(flips)).toEqual([]);
});

test("a state that alternates within the hour is one alert, and the next one says how often", () => {
  const flips = Array.from({ length: 20 }, (_, index) => ({
    condition: index % 2 === 0 ? ("red" as const) : ("well" as const),
    afterMs: 4 * MINUTE_MS,
  }));
  const minute = (at: number) => (at - BEGIN) / MINUTE_MS;
  expect(toldOf(flips).map(({ kind, at, times }) => [kind, minute(at), times])).toEqual([
    ["red", 2, 1],
    ["recovered", 6, 1],
    ["red", 66, 9],
    ["recovered", 70, 9],
  ]);
});

test("each level of a budget is sent once a month, and only from bad to worse", () => {
  const levels = [
    "inside",
    "forecast",
    "inside",
    "forecast",
    "spent",
    "forecast",
    "spent",
    "over",
    "inside",
  ] as const;
  let state = UNSEEN;
  const told: string[] = [];
  const day = (index: number) => new Date(BEGIN + index * 24 * 60 * MINUTE_MS);
  const look = (at: Date, level: (typeof levels)[number]) => {
    const { after, tell } = stepBudget(state, level, at);
    state = after;
    if (tell) told.push(level);
  };
  for (const [index, level] of levels.entries()) {
    for (const minutes of [0, 1, 2, 3]) look(new Date(day(index).getTime() + minutes * MINUTE_MS), level);
  }
  expect(told).toEqual(["forecast", "spent", "over"]);
  look(day(20), "spent");
  look(day(21), "spent");
  expect(told).toEqual(["forecast", "spent", "over", "spent"]);
});
