/** Live mode for tests: a sync engine over a fake source, with a feed in memory. */
import { onTestFinished } from "vitest";
import type { RunReport } from "../../core/control/bases";
import { isBasetideError } from "../../core/errors";
import { trimOldRecentWrites } from "../../core/sync/lease/trim-recent-writes";
import { liveBase } from "../../core/sync/modes/live";
import type { Cadence } from "../../core/sync/pacing";
import type { BaseCache } from "../../core/sync/state";
import { type Engine, type SyncOptions, testEngine } from "./engine";
import { FakeWebhook } from "./fake-feed";
import type { FakeSource } from "./fake-source";
import { until } from "./poll";

const DAY_MS = 86_400_000;
/** Longest that a change may take to be durable: a busy machine has stood still for 20 s. */
const SETTLED_MS = 60_000;

export interface LiveEngine extends Engine {
  webhook: FakeWebhook;
  runs: RunReport[];
  /** Nothing happens by itself unless a test has it so. */
  cadence: Cadence;
  /** Goes live, with what the worker remembers; until the test is over, it is stopped, or `isOver`. */
  start(options?: SyncOptions): Running;
  /** Everything that was told of is in the replica, and the cursor durable. */
  settled(): Promise<void>;
}

export interface Running {
  /** Cuts it off, wherever it is. */
  stop(): Promise<void>;
  /** The lease has lasted for long enough. */
  over(): Promise<void>;
  /** Resolves with what ended it. */
  ended: Promise<unknown>;
}

/** @param options.absentMs when records that are named and not there are looked for again */
export async function liveEngine(
  options: { emptySpellMs?: number; source?: FakeSource; absentMs?: number[] } = {},
): Promise<LiveEngine> {
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
  const start = (syncOptions: SyncOptions = {}): Running => {
    const stop = new AbortController();
    let isOver = false;
    const input = engine.input(syncOptions);
    const cache: BaseCache = engine.cache;
    const ended = liveBase({
      ...input,
      base: { ...input.base, error: null, sweep: { startedAt: new Date() } as never },
      reader: { ...input.reader, stop: stop.signal },
      cache,
      feed: webhook.open(),
      cadence: () => cadence,
      isOver: () => isOver,
      onRun: async (report) => void runs.push(report),
      onRead: (at) => trimOldRecentWrites(input.replica, cache, at),
      onMissed: () => {},
      absentMs: options.absentMs,
    }).catch((error: unknown) => {
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
    onTestFinished(() => running.stop());
    return running;
  };
  return Object.assign(engine, {
    webhook,
    runs,
    cadence,
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
