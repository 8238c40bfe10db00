/** Live mode for tests: a sync engine over a fake source, with a feed in memory. */
import { onTestFinished, type TestContext } from "vitest";
import { isBasetideError } from "../../core/errors";
import type { RunReport } from "../../core/sync/host";
import { trimOldRecentWrites } from "../../core/sync/lease/trim-recent-writes";
import { type LiveInput, liveBase } from "../../core/sync/modes/live";
import type { Cadence } from "../../core/sync/pacing";
import type { BaseCache } from "../../core/sync/state";
import { type Engine, type SyncOptions, testEngine } from "./engine";
import { FakeWebhook } from "./fake-feed";
import { type FakeSource, modifiedSince } from "./fake-source";
import { until } from "./poll";

const DAY_MS = 86_400_000;
/** The longest time until a change is durable: a busy machine once stalled for 20 s. */
const SETTLED_MS = 60_000;

export interface LiveEngine extends Engine {
  webhook: FakeWebhook;
  runs: RunReport[];
  /** Nothing runs periodically unless a test sets it. */
  cadence: Cadence;
  /** What live mode gets in `start`, until `signal` aborts. */
  liveInput(signal: AbortSignal, options?: SyncOptions): LiveInput;
  /** Starts live mode with the worker's caches. It runs until the test ends, it is stopped, or `isOver`. */
  start(options?: SyncOptions): Running;
  /** Resolves when everything in the feed is in the replica, and the cursor is durable. */
  settled(): Promise<void>;
}

export interface Running {
  /** Aborts it at any point. */
  stop(): Promise<void>;
  /** Ends the lease as if its time were over. */
  over(): Promise<void>;
  /** Resolves with the reason why it ended. */
  ended: Promise<unknown>;
}

/**
 * @param options.absentMs when records that the feed named and that were not found are read again
 * @param options.hasEarlyReads whether the source can list modified records, and tells the time
 * @param options.onFinished the `onTestFinished` of a test's context, which a concurrent test must give
 */
export async function liveEngine(
  options: {
    emptySpellMs?: number;
    source?: FakeSource;
    absentMs?: number[];
    hasEarlyReads?: boolean;
    onFinished?: TestContext["onTestFinished"];
  } = {},
): Promise<LiveEngine> {
  const { onFinished = onTestFinished } = options;
  const engine = await testEngine(options);
  const webhook = new FakeWebhook();
  const runs: RunReport[] = [];
  const cadence: Cadence = {
    pollMs: 60_000,
    notificationGapMs: 1,
    freshnessMs: DAY_MS,
    schemaMs: DAY_MS,
    sweepEveryMs: DAY_MS,
    sweepCallMs: 0,
    cycleMs: DAY_MS,
  };
  let failure: unknown;
  const liveInput = (signal: AbortSignal, syncOptions: SyncOptions = {}): LiveInput => {
    const input = engine.input(syncOptions);
    if (options.hasEarlyReads) engine.cache.sourceClock.record(Date.now());
    const cache: BaseCache = engine.cache;
    return {
      ...input,
      base: { ...input.base, error: null, sweep: { startedAt: new Date() } as never },
      reader: { ...input.reader, stop: signal },
      cache,
      feed: webhook.open(),
      cadence: () => cadence,
      isOver: () => false,
      onRun: async (report) => void runs.push(report),
      onRead: (at) => trimOldRecentWrites(input.replica, cache, at),
      onMissed: () => {},
      absentMs: options.absentMs,
      modifiedSince: options.hasEarlyReads ? modifiedSince : undefined,
    };
  };
  const start = (syncOptions: SyncOptions = {}): Running => {
    const stop = new AbortController();
    let isOver = false;
    const input = liveInput(stop.signal, syncOptions);
    const ended = liveBase({ ...input, isOver: () => isOver }).catch((error: unknown) => {
      if (!isBasetideError(error, "sync_stopped")) failure = error;
      return error;
    });
    const running = {
      ended,
      async stop() {
        stop.abort();
        await ended;
      },
      async over() {
        isOver = true;
        await ended;
      },
    };
    onFinished(() => running.stop());
    return running;
  };
  return Object.assign(engine, {
    webhook,
    runs,
    cadence,
    liveInput,
    start,
    async settled() {
      const isSettled = () => failure !== undefined || webhook.saved === webhook.payloads.length + 1;
      await until(isSettled, {
        what: `the cursor is at ${webhook.payloads.length + 1}`,
        timeoutMs: SETTLED_MS,
      });
      if (failure) throw failure;
    },
  });
}
