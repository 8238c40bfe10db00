/** Live mode with clients that use up the quota, on a virtual clock: the real rule, the real wait queues and split. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { RateLimiter } from "../../../core/limiter";
import { DEPENDENT_PATIENCE_MS, FEED_PATIENCE_MS } from "../../../core/sync/modes/live/live-readers";
import { QuotaSplit } from "../../../core/sync/pacing";
import { controlDatabase, type TestDatabase } from "../../support/database";
import { quantile } from "../../support/quantile";
import { mostWithin, simulate } from "../../support/quota-simulation";

// Minutes of a virtual clock with a statement for each call: a machine without free CPU takes its time.
vi.setConfig({ testTimeout: 120_000 });

let database: TestDatabase;
beforeAll(async () => {
  database = await controlDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Times are exact to a quarter of a µs. */
const WINDOW_MS = 999.999;
/** Everything that the rule grants, per second: a window, and the minimum margin for transit of each call. */
const MOST_PER_SECOND = 5 / 1.02;

interface Load {
  clients: number;
  /** Mean time between two edits, ms; Infinity: none. */
  editEveryMs: number;
  hasNotifications: boolean;
  isLive?: boolean;
}

/** Some minutes of a live base: its feed, the changes in it, their dependents, and a sweep in the background. */
async function liveBase({ clients, editEveryMs, hasNotifications, isLive = true }: Load) {
  const run = simulate(database.sql);
  const { clock } = run;
  const untilMs = 150_000;
  const latency = () => clock.sleep(50 + Math.random() * 200);
  const stop = new AbortController();
  const lanes = { live: run.queue("live", 3), named: run.queue("named", 3), sync: run.queue("sync", 3) };
  const limiter = {
    acquireSync: async (_key, _share, signal, { live } = {}) => {
      const kind = live ?? "sync";
      const askedAt = clock.now();
      await lanes[kind].wait(Infinity, signal);
      run.grants.push({ kind, askedAt, at: clock.now() });
      return undefined;
    },
  } satisfies Pick<RateLimiter, "acquireSync"> as RateLimiter;
  const pace = () => ({ every: 60, gapMs: 1000, holdMs: 700 });
  const split = new QuotaSplit(limiter, pace, stop.signal, { isLive, clock });
  const place = (lane: "foreground" | "background", patienceMs: number) =>
    split.limiterFor(lane, patienceMs).acquireSync("key", 3, stop.signal);

  for (let client = 0; client < clients; client++) {
    const lane = run.queue("client", 5);
    (async () => {
      while (clock.now() < untilMs) {
        await run.take(lane, "client", { deadlineMs: 30_000 });
        await latency();
      }
    })();
  }
  let unread: number[] = [];
  let ring = Promise.withResolvers<void>();
  const took = { edits: [] as number[], dependents: [] as number[] };
  (async () => {
    while (clock.now() < untilMs && editEveryMs < Infinity) {
      await clock.sleep((0.5 + Math.random()) * editEveryMs);
      unread.push(clock.now());
      if (hasNotifications) clock.at(clock.now() + 20, ring.resolve);
    }
  })();
  // As the engine does: one read of a table at a time, with everything that is reported before it begins.
  const jobOf = (patienceMs: number, times: number[], then: (edits: number[]) => void) => {
    let named: number[] = [];
    let isReading = false;
    return async (edits: number[]) => {
      named.push(...edits);
      if (isReading) return;
      isReading = true;
      while (named.length > 0) {
        const batch = named;
        named = [];
        await place("foreground", patienceMs);
        await latency();
        times.push(...batch.map((madeAt) => clock.now() - madeAt));
        then(batch);
      }
      isReading = false;
    };
  };
  const readDependents = jobOf(DEPENDENT_PATIENCE_MS, took.dependents, () => {});
  const readNamed = jobOf(0, took.edits, (edits) => void readDependents(edits));
  (async () => {
    while (clock.now() < untilMs) {
      const readAt = clock.now();
      await place("foreground", FEED_PATIENCE_MS);
      ring = Promise.withResolvers();
      const told = unread;
      unread = [];
      await latency();
      if (told.length > 0) void readNamed(told);
      if (hasNotifications) await ring.promise;
      else await clock.sleep(Math.max(0, readAt + 1000 - clock.now()));
    }
  })();
  (async () => {
    while (clock.now() < untilMs) {
      await place("background", 0);
      await latency();
    }
  })();
  await clock.run(untilMs);
  const sent = (kind: string) => run.grants.filter((grant) => grant.kind === kind);
  return { took, sent, all: run.grants.map(({ at }) => at), seconds: untilMs / 1000 };
}

test("while clients ask for more than the limit, an edit is in SQL within 3 s, and they keep four of five reservations", async () => {
  const { took, sent, all, seconds } = await liveBase({
    clients: 12,
    editEveryMs: 5000,
    hasNotifications: true,
  });
  expect(mostWithin(all, WINDOW_MS)).toBeLessThanOrEqual(5);
  expect(took.edits.length).toBeGreaterThan(20);
  expect(quantile(took.edits, 0.95)).toBeLessThanOrEqual(3000);
  expect(quantile(took.dependents, 0.95)).toBeLessThanOrEqual(6000);
  expect(sent("client").length / seconds).toBeGreaterThanOrEqual(0.8 * MOST_PER_SECOND);
  expect(all.length / seconds).toBeGreaterThanOrEqual(0.97 * MOST_PER_SECOND);
});

test("a feed that is polled takes at most one reservation per second for everything, and an edit is still in SQL within 3 s", async () => {
  const { took, sent, all, seconds } = await liveBase({
    clients: 12,
    editEveryMs: 5000,
    hasNotifications: false,
  });
  expect(mostWithin(all, WINDOW_MS)).toBeLessThanOrEqual(5);
  expect(took.edits.length).toBeGreaterThan(20);
  expect(quantile(took.edits, 0.95)).toBeLessThanOrEqual(3000);
  expect(sent("client").length / seconds).toBeGreaterThanOrEqual(0.8 * MOST_PER_SECOND - 0.05);
});

test("without changes, live mode takes almost nothing from clients that ask for everything", async () => {
  const { sent, seconds } = await liveBase({ clients: 12, editEveryMs: Infinity, hasNotifications: true });
  expect(sent("client").length / seconds).toBeGreaterThanOrEqual(0.96 * MOST_PER_SECOND);
});

test("while clients leave capacity, a live request waits no longer than one of sync, and clients wait no longer for it", async () => {
  for (const clients of [0, 2]) {
    const { took } = await liveBase({ clients, editEveryMs: 5000, hasNotifications: true });
    expect(quantile(took.edits, 0.95)).toBeLessThanOrEqual(clients === 0 ? 1000 : 2500);
  }
});
