import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Base, LiveState, SyncProblem } from "../../core/control/bases";
import { indicatorOf, median } from "../../core/control/status";

const now = new Date("2026-11-20T12:00:00Z");
const ago = (ms: number) => new Date(now.getTime() - ms);
type Facts = Parameters<typeof indicatorOf>[0];

/** A base that sweeps in ten seconds, and completed its last sweep a second ago. */
function base(changes: Partial<Facts> = {}): Facts {
  return {
    state: "active",
    sync: synced(10_000),
    sweep: null,
    error: null,
    recentSweepMs: Array(20).fill(10_000),
    progress: null,
    createdAt: ago(9e9),
    settings: { live: true, rapid: false },
    live: null,
    restsUntil: null,
    blocked: null,
    isReadOnly: false,
    problems: [],
    progressAt: null,
    repairsSince: null,
    catchUpRequestedAt: null,
    failingTables: [],
    schemaError: null,
    ...changes,
  };
}

function synced(durationMs: number, ageMs = 1000): NonNullable<Base["sync"]> {
  return { kind: "sweep", startedAt: ago(ageMs + durationMs), completedAt: ago(ageMs), durationMs };
}

function problem(changes: Partial<SyncProblem> = {}): SyncProblem {
  return {
    kind: "missing_table",
    tableId: "tblOne",
    name: "Orders",
    message: "",
    since: ago(30_000),
    nextAt: null,
    ...changes,
  };
}

const color = (changes: Partial<Facts>) => indicatorOf(base(changes), now).color;

test("a base that syncs as usual is green, and shows how long a sync takes", () => {
  expect(indicatorOf(base(), now)).toMatchObject({
    color: "green",
    reason: "In sync; the last sync took 10 s",
  });
});

test("a base is red while the control plane is read-only, however healthy it was", () => {
  expect(color({ isReadOnly: true })).toBe("red");
  expect(color({ isReadOnly: true, state: "paused" })).toBe("yellow");
});

describe("a slow sync", () => {
  test("is yellow over twice the median of the last 20, red over five times", () => {
    expect(color({ sync: synced(20_000) })).toBe("green");
    expect(color({ sync: synced(20_001) })).toBe("yellow");
    expect(color({ sync: synced(50_000) })).toBe("yellow");
    expect(color({ sync: synced(50_001) })).toBe("red");
    expect(indicatorOf(base({ sync: synced(200_000) }), now).reason).toBe(
      "The last sync took 3 min 20 s; usually it takes 10 s",
    );
  });

  test("is not called slow before three sweeps show the usual duration, within two seconds, or for a rebuild", () => {
    expect(color({ sync: synced(90_000), recentSweepMs: [90_000, 10_000] })).toBe("green");
    expect(color({ sync: synced(1900), recentSweepMs: Array(20).fill(100) })).toBe("green");
    expect(color({ sync: { ...synced(90_000), kind: "rebuild" } })).toBe("green");
  });
});

test("a missing sync is yellow when late, red when very late", () => {
  expect(color({ sync: synced(10_000, 80_000) })).toBe("green");
  expect(color({ sync: synced(10_000, 80_001) })).toBe("yellow");
  expect(color({ sync: synced(10_000, 350_001) })).toBe("red");
  expect(indicatorOf(base({ sync: synced(10_000, 7_500_000) }), now).reason).toBe(
    "No sync has completed for 2 h 5 min; usually it takes 10 s",
  );
});

test("a pause for the call budget is no delay; what is late after it is", () => {
  const rested = (ms: number) => ({ sync: synced(10_000, 9e7), restsUntil: ago(ms) });
  expect(indicatorOf(base(rested(-3_600_000)), now)).toMatchObject({
    color: "green",
    reason: "Paced by the call budget; the next sync starts in 1 h",
  });
  expect(color(rested(80_000))).toBe("green");
  expect(color(rested(80_001))).toBe("yellow");
  expect(color(rested(350_001))).toBe("red");
});

describe("a base in rapid mode", () => {
  const sweptAgo = (ageMs: number) => ({
    sync: { ...synced(4000), kind: "rapid" as const },
    recentSweepMs: Array(20).fill(4000),
    sweep: { startedAt: ago(ageMs + 600_000), completedAt: ago(ageMs), backgroundMs: 600_000 },
  });

  test("is judged by its cycles", () => {
    expect(color(sweptAgo(1000))).toBe("green");
    expect(color({ ...sweptAgo(1000), sync: { ...synced(9000), kind: "rapid" } })).toBe("yellow");
    expect(color({ ...sweptAgo(1000), sync: { ...synced(21_000), kind: "rapid" } })).toBe("red");
  });

  test("is yellow when the sweep for deletes and computed fields is late, red when it is very late", () => {
    expect(color(sweptAgo(1_260_000))).toBe("green");
    expect(color(sweptAgo(1_260_001))).toBe("yellow");
    expect(color(sweptAgo(3_300_001))).toBe("red");
    expect(indicatorOf(base(sweptAgo(1_300_000)), now).reason).toBe(
      "Deletes and computed fields were last checked 21 min 40 s ago; usually it takes 10 min",
    );
  });
});

describe("a base in live mode", () => {
  const HOUR_MS = 3_600_000;
  /** Read a second ago, compared a minute ago; nothing was synced for hours, since nothing has changed. */
  const live = (changes: Partial<LiveState> = {}): Partial<Facts> => ({
    sync: { ...synced(300, 5 * HOUR_MS), kind: "live" },
    recentSweepMs: Array(20).fill(300),
    sweep: { startedAt: ago(20 * HOUR_MS), completedAt: ago(19 * HOUR_MS), backgroundMs: 120_000 },
    live: {
      state: "on",
      reason: "",
      by: "poll",
      changedAt: ago(5 * HOUR_MS),
      readAt: ago(1000),
      dueAt: ago(0),
      waiting: 0,
      waitingSince: null,
      missed: 0,
      missedAt: null,
      comparedAt: ago(60_000),
      driftedSince: null,
      gapSince: null,
      expiresAt: null,
      offSince: null,
      retryAt: null,
      ...changes,
    },
  });
  const reason = (changes: Partial<LiveState>) => indicatorOf(base(live(changes)), now).reason;
  const colorOf = (changes: Partial<LiveState>) => color(live(changes));

  test("is green without a sync for hours, and shows when SQL last equaled the source", () => {
    expect(indicatorOf(base(live()), now)).toMatchObject({
      color: "green",
      reason: "Live; the database matched Airtable 1 min ago",
    });
  });

  test("is yellow when the feed was not read in time, red when it is five minutes late", () => {
    expect(colorOf({ dueAt: ago(60_000) })).toBe("green");
    expect(colorOf({ dueAt: ago(60_001) })).toBe("yellow");
    expect(colorOf({ dueAt: ago(300_001) })).toBe("red");
    expect(reason({ readAt: ago(9e5), dueAt: ago(3e5) })).toBe(
      "Airtable has not been checked for changes for 15 min",
    );
  });

  test("is yellow when SQL was found to lag, red when that lasts", () => {
    expect(colorOf({ driftedSince: ago(1) })).toBe("yellow");
    expect(reason({ driftedSince: ago(90_000) })).toBe(
      "The database was found to lag behind Airtable 1 min 30 s ago",
    );
    expect(colorOf({ driftedSince: ago(300_001) })).toBe("red");
  });

  test("is never green because of a webhook alone: SQL must be compared or swept within the hour", () => {
    expect(colorOf({ comparedAt: ago(HOUR_MS) })).toBe("green");
    expect(colorOf({ comparedAt: ago(HOUR_MS + 1) })).toBe("yellow");
    expect(colorOf({ comparedAt: ago(5 * HOUR_MS + 1) })).toBe("red");
    expect(colorOf({ comparedAt: null })).toBe("red");
    const swept = { startedAt: ago(60_000), completedAt: ago(30_000), backgroundMs: 30_000 };
    expect(color({ ...live({ comparedAt: null }), sweep: swept })).toBe("green");
    // A budget slows down both reads and comparisons.
    const slow = { readAt: ago(HOUR_MS / 2), dueAt: new Date(now.getTime() + HOUR_MS / 2) };
    expect(colorOf({ ...slow, comparedAt: ago(6 * HOUR_MS) })).toBe("green");
    expect(colorOf({ ...slow, comparedAt: ago(7 * HOUR_MS) })).toBe("yellow");
    // A base that relies on notifications is polled every five minutes.
    const by = "notification" as const;
    const resting = { by, readAt: ago(0), dueAt: new Date(now.getTime() + 298_000) };
    expect(colorOf({ ...resting, comparedAt: ago(6 * HOUR_MS) })).toBe("green");
    expect(colorOf({ ...resting, comparedAt: ago(7 * HOUR_MS) })).toBe("yellow");
  });

  test("is yellow when changes wait for a minute, red as long as nothing explains it", () => {
    const waiting = (ms: number) => ({ waiting: 20_000, waitingSince: ago(ms) });
    expect(colorOf(waiting(60_000))).toBe("green");
    expect(colorOf(waiting(60_001))).toBe("yellow");
    expect(colorOf(waiting(300_001))).toBe("red");
    expect(reason({ waiting: 1, waitingSince: ago(120_000) })).toBe(
      "1 changed record waits to be read, the oldest for 2 min",
    );
  });

  test("is yellow when a feed gap is not closed by a sweep in time, red later", () => {
    expect(colorOf({ gapSince: ago(360_000) })).toBe("green");
    expect(colorOf({ gapSince: ago(360_001) })).toBe("yellow");
    expect(colorOf({ gapSince: ago(900_001) })).toBe("red");
  });

  test("shows its worst problem", () => {
    expect(reason({ driftedSince: ago(1), dueAt: ago(400_000), readAt: ago(401_000) })).toMatch(
      /^Airtable has not been checked/,
    );
  });

  test("is judged by sweeps if the key lacks permission, live mode is disabled, or rapid mode is enabled", () => {
    const swept = { ...live(), sync: synced(10_000, 80_001), recentSweepMs: Array(20).fill(10_000) };
    expect(color(swept)).toBe("green");
    expect(color({ ...swept, live: { ...live().live!, state: "refused" } })).toBe("yellow");
    expect(color({ ...swept, live: { ...live().live!, state: "making", readAt: null } })).toBe("yellow");
    expect(color({ ...swept, settings: { live: false, rapid: false } })).toBe("yellow");
    expect(color({ ...swept, settings: { live: true, rapid: true } })).toBe("yellow");
    expect(color({ ...live(), settings: { live: false, rapid: false } })).toBe("yellow");
  });
});

describe("a base is not green although its syncs complete", () => {
  const later = (ms: number) => new Date(now.getTime() + ms);

  test("while a table of Airtable is not in the database, in any mode", () => {
    const problems = [
      problem(),
      problem({ tableId: "tblTwo", name: "People", since: ago(90_000), message: "Airtable: not found." }),
    ];
    const one = { color: "yellow", cause: "missing", tables: ["Orders"], since: ago(30_000) };
    expect(indicatorOf(base({ problems: [problem()] }), now)).toMatchObject({
      ...one,
      reason: "A table of Airtable is not in the database: Orders, for 30 s. It is being copied",
    });
    const live = { state: "on", readAt: ago(300), comparedAt: ago(300), waiting: 0 } as LiveState;
    expect(indicatorOf(base({ live, problems: [problem()] }), now)).toMatchObject(one);
    expect(indicatorOf(base({ problems }), now)).toMatchObject({
      color: "yellow",
      reason:
        "2 tables of Airtable are not in the database: Orders, People, for 1 min 30 s. Airtable: not found",
      since: ago(90_000),
    });
  });

  test("and is red once that has lasted for five minutes, unless the table is still being copied", () => {
    const lasting = problem({ since: ago(300_001) });
    expect(color({ problems: [lasting] })).toBe("red");
    expect(color({ problems: [lasting], progressAt: ago(1000) })).toBe("yellow");
    expect(color({ problems: [{ ...lasting, message: "refused" }], progressAt: ago(1000) })).toBe("red");
  });

  test("while a table waits for its new columns and the build has not got further for two minutes", () => {
    const outdated = problem({ kind: "outdated_table", since: ago(120_001) });
    expect(color({ problems: [outdated], progressAt: ago(120_000) })).toBe("green");
    expect(color({ problems: [outdated], progressAt: ago(120_001) })).toBe("yellow");
    expect(color({ problems: [problem({ kind: "outdated_table", since: ago(1000) })] })).toBe("green");
  });

  test("while the schema cannot be read, a check fails for a table, or settings wait", () => {
    const schema = (ms: number) => ({
      schemaError: { code: "source_timeout" as const, message: "No answer", since: ago(ms).toISOString() },
    });
    expect(color(schema(30_000))).toBe("green");
    expect(indicatorOf(base(schema(31_000)), now)).toMatchObject({
      color: "yellow",
      reason: "The schema of the base could not be checked for 31 s. No answer",
    });
    expect(color(schema(300_001))).toBe("red");
    const failing = {
      ...{
        table_id: "tblOne",
        name: "Orders",
        code: "source_forbidden" as const,
        message: "Airtable says no.",
      },
      ...{ since: ago(60_000).toISOString(), next_try_at: new Date(now.getTime() + 5000).toISOString() },
    };
    expect(indicatorOf(base({ failingTables: [failing] }), now)).toMatchObject({
      color: "yellow",
      cause: "failing_table",
      reason: expect.stringContaining('The table "Orders" has not been readable for 1 min'),
      tables: ["Orders"],
      nextAt: new Date(now.getTime() + 5000),
    });
    const unchanged = { ...failing, code: "needs_attention" as const };
    expect(indicatorOf(base({ failingTables: [unchanged] }), now).reason).toMatch(
      /^The table "Orders" has needed attention for 1 min/,
    );
    expect(color({ problems: [problem({ kind: "settings" })] })).toBe("yellow");
  });

  test("while live mode is on and there is no feed", () => {
    const read = { readAt: ago(1000), comparedAt: ago(1000), waiting: 0 };
    const live = {
      ...read,
      state: "failing",
      reason: "No answer.",
      offSince: ago(90_000),
      retryAt: later(9000),
    };
    expect(indicatorOf(base({ live: live as LiveState }), now)).toMatchObject({
      color: "yellow",
      cause: "live_off",
      reason: "Live sync is off, for 1 min 30 s. No answer",
      nextAt: later(9000),
    });
    // The webhook is there again, and was not read yet.
    expect(color({ live: { ...live, state: "on" } as LiveState })).toBe("yellow");
    expect(color({ live: live as LiveState, settings: { live: false, rapid: false } })).toBe("green");
    expect(color({ live: live as LiveState, settings: { live: true, rapid: true } })).toBe("green");
    // A feed that no worker reads after the first sync.
    const unread = { state: "on", readAt: null, gapSince: ago(90_000), offSince: null } as LiveState;
    expect(color({ live: unread, sync: synced(10_000, 60_001), recentSweepMs: [] })).toBe("yellow");
    expect(color({ live: unread, sync: synced(10_000, 60_000), recentSweepMs: [] })).toBe("green");
  });

  test("while a client's write waits for a minute", () => {
    expect(color({ repairsSince: ago(60_000) })).toBe("green");
    expect(color({ repairsSince: ago(60_001) })).toBe("yellow");
    expect(color({ catchUpRequestedAt: ago(300_001) })).toBe("red");
  });

  test("while its times lie ahead of the server's clock", () => {
    expect(color({ sync: synced(10_000, -60_000) })).toBe("green");
    expect(color({ sync: synced(10_000, -60_001) })).toBe("yellow");
  });
});

test("a failing base is red with the reason, yellow while the source only asked for a pause", () => {
  const error = { code: "source_timeout" as const, message: "No answer", since: ago(65_000) };
  expect(indicatorOf(base({ error }), now)).toMatchObject({
    color: "red",
    reason: "Failing for 1 min 5 s: No answer",
  });
  expect(color({ error: { ...error, code: "source_rate_limited" } })).toBe("yellow");
  expect(color({ error: { ...error, code: "source_key_refused" }, state: "needs_attention" })).toBe("red");
});

test("a first sync that gets no further for two minutes is yellow, red after ten, and names its tables", () => {
  const table = {
    name: "orders",
    source_name: "Orders",
    records_done: 7,
    records_estimate: null,
    done: false,
  };
  const tables = [table, { ...table, source_name: "People", done: true }];
  const progress = { kind: "first" as const, started_at: ago(9e6).toISOString(), tables };
  const starting = { state: "starting" as const, sync: null, recentSweepMs: [], progress };
  expect(color({ ...starting, progressAt: ago(120_000) })).toBe("green");
  // What is in its way is named at once.
  const blocked = { until: new Date(now.getTime() + 9000), reason: "rate_limited" as const };
  expect(indicatorOf(base({ ...starting, blocked }), now)).toMatchObject({
    color: "yellow",
    cause: "blocked",
  });
  const since = ago(60_000).toISOString();
  const schemaError = { code: "source_timeout" as const, message: "No answer", since };
  const unread = { ...starting, progress: null, schemaError };
  expect(indicatorOf(base(unread), now)).toMatchObject({ color: "yellow", cause: "schema" });
  expect(color({ ...starting, progressAt: ago(600_001) })).toBe("red");
  expect(indicatorOf(base({ ...starting, progressAt: ago(120_001) }), now)).toMatchObject({
    color: "yellow",
    cause: "stalled",
    reason: "The first sync has made no progress for 2 min. Not in the database yet: Orders",
    tables: ["Orders"],
  });
});

test("a first sync is green while it runs, yellow if no worker has started it for a minute", () => {
  const starting = { state: "starting" as const, sync: null, recentSweepMs: [] };
  const progress = { kind: "first" as const, started_at: ago(9e6).toISOString(), tables: [] };
  expect(color({ ...starting, createdAt: ago(60_000) })).toBe("green");
  expect(color({ ...starting, progress, progressAt: ago(1000) })).toBe("green");
  expect(indicatorOf(base({ ...starting, createdAt: ago(60_001) }), now)).toMatchObject({
    color: "yellow",
    reason: "The first sync has been waiting to start for 1 min",
  });
});

test("a paused base is yellow, whatever other problems it has", () => {
  const error = { code: "source_timeout" as const, message: "No answer", since: ago(1) };
  expect(indicatorOf(base({ state: "paused", error }), now).reason).toBe("Syncing is paused");
});

test("the median lies between its neighbors, in any order", () => {
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
