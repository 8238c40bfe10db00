import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Base } from "../../core/control";
import { indicatorOf, median } from "../../core/control/indicator";

const now = new Date("2026-11-20T12:00:00Z");
const ago = (ms: number) => new Date(now.getTime() - ms);
type Facts = Parameters<typeof indicatorOf>[0];

/** A base that sweeps in ten seconds, the last one completed a second ago. */
function base(changes: Partial<Facts> = {}): Facts {
  return {
    state: "active",
    sync: synced(10_000),
    sweep: null,
    error: null,
    recentSweepMs: Array(20).fill(10_000),
    progress: null,
    createdAt: ago(9e9),
    ...changes,
  };
}

function synced(durationMs: number, ageMs = 1000): NonNullable<Base["sync"]> {
  return { kind: "sweep", startedAt: ago(ageMs + durationMs), completedAt: ago(ageMs), durationMs };
}

const color = (changes: Partial<Facts>) => indicatorOf(base(changes), now).color;

test("a base that syncs as usual is green, and says how long a sync takes", () => {
  expect(indicatorOf(base(), now)).toEqual({ color: "green", reason: "In sync; the last sync took 10 s" });
});

describe("a slow sync", () => {
  test("is yellow over twice the median of the last 20, red over five times", () => {
    expect(color({ sync: synced(20_000) })).toBe("green");
    expect(color({ sync: synced(20_001) })).toBe("yellow");
    expect(color({ sync: synced(50_000) })).toBe("yellow");
    expect(color({ sync: synced(50_001) })).toBe("red");
    expect(indicatorOf(base({ sync: synced(200_000) }), now).reason).toBe(
      "The last sync took 3 min 20 s; usual are 10 s",
    );
  });

  test("is not called slow before three sweeps say what is usual, within two seconds, or for a rebuild", () => {
    expect(color({ sync: synced(90_000), recentSweepMs: [90_000, 10_000] })).toBe("green");
    expect(color({ sync: synced(1900), recentSweepMs: Array(20).fill(100) })).toBe("green");
    expect(color({ sync: { ...synced(90_000), kind: "rebuild" } })).toBe("green");
  });
});

test("a sync that does not come is yellow when late, red when very late", () => {
  expect(color({ sync: synced(10_000, 80_000) })).toBe("green");
  expect(color({ sync: synced(10_000, 80_001) })).toBe("yellow");
  expect(color({ sync: synced(10_000, 350_001) })).toBe("red");
  expect(indicatorOf(base({ sync: synced(10_000, 7_500_000) }), now).reason).toBe(
    "No sync has completed for 2 h 5 min; usual are 10 s",
  );
});

describe("a base in rapid mode", () => {
  const sweptAgo = (ageMs: number) => ({
    sync: { ...synced(4000), kind: "rapid" as const },
    recentSweepMs: Array(20).fill(4000),
    sweep: { startedAt: ago(ageMs + 600_000), completedAt: ago(ageMs), besideMs: 600_000 },
  });

  test("is judged by its turns", () => {
    expect(color(sweptAgo(1000))).toBe("green");
    expect(color({ ...sweptAgo(1000), sync: { ...synced(9000), kind: "rapid" } })).toBe("yellow");
    expect(color({ ...sweptAgo(1000), sync: { ...synced(21_000), kind: "rapid" } })).toBe("red");
  });

  test("is yellow when the sweep for deletes and computed fields is late, red when it is very late", () => {
    expect(color(sweptAgo(1_260_000))).toBe("green");
    expect(color(sweptAgo(1_260_001))).toBe("yellow");
    expect(color(sweptAgo(3_300_001))).toBe("red");
    expect(indicatorOf(base(sweptAgo(1_300_000)), now).reason).toBe(
      "Deletes and computed fields were last swept 21 min 40 s ago; usual are 10 min 0 s",
    );
  });
});

test("a failing base is red with the reason, yellow while the source only asked for a pause", () => {
  const error = { code: "source_timeout" as const, message: "No answer", since: ago(65_000) };
  expect(indicatorOf(base({ error }), now)).toEqual({
    color: "red",
    reason: "Failing for 1 min 5 s: No answer",
  });
  expect(color({ error: { ...error, code: "source_rate_limited" } })).toBe("yellow");
  expect(color({ error: { ...error, code: "source_key_refused" }, state: "needs_attention" })).toBe("red");
});

test("a first sync is green while it runs, yellow when no worker has begun it for a minute", () => {
  const starting = { state: "starting" as const, sync: null, recentSweepMs: [] };
  const progress = { kind: "first" as const, started_at: ago(9e6).toISOString(), tables: [] };
  expect(color({ ...starting, createdAt: ago(60_000) })).toBe("green");
  expect(color({ ...starting, progress })).toBe("green");
  expect(indicatorOf(base({ ...starting, createdAt: ago(60_001) }), now)).toEqual({
    color: "yellow",
    reason: "The first sync has not begun for 1 min 0 s",
  });
});

test("a paused base is yellow whatever else is the matter", () => {
  const error = { code: "source_timeout" as const, message: "No answer", since: ago(1) };
  expect(indicatorOf(base({ state: "paused", error }), now).reason).toBe("Syncing is paused");
});

test("the median lies between its neighbours, in whatever order they come", () => {
  const values = fc.array(fc.integer({ min: 0, max: 1000 }), { minLength: 1 });
  fc.assert(
    fc.property(values, (list) => {
      const middle = median(list)!;
      const below = list.filter((value) => value < middle).length;
      const above = list.filter((value) => value > middle).length;
      expect(Math.max(below, above)).toBeLessThanOrEqual(list.length / 2);
      expect(median(list.toReversed())).toBe(middle);
    }),
  );
  expect(median([])).toBeNull();
});
