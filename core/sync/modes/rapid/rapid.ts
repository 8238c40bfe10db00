/**
 * Rapid mode: polls each table for records that were modified since the previous poll, all tables in each cycle,
 * without end. In the background a scan sweeps the tables one by one with a sixth of the requests, to find deletes and
 * computed fields.
 *
 * For `_sync_meta` and the run history, a sync is a cycle over all tables, which starts at the end of the one before. The
 * scan has its own runs.
 * The scan takes one table at a time, so that each is read once per scan and no delete waits for two. It may take ten
 * minutes and more: the lease ends between two of its tables, and its position is cached from lease to lease.
 * A table that must be rebuilt is not polled until the rebuild is done; the others are polled, with half of the
 * requests.
 */

import { Notifier, TaskGroup, wait } from "../../../async";
import { BasetideError } from "../../../errors";
import { markSyncCompleted, markSyncStarted } from "../../../replica";
import type { Reader } from "../../engine";
import {
  endSync,
  pollForChanges,
  readerOfTable,
  reportIssues,
  SchemaTracker,
  tableCounts,
} from "../../engine";
import type { Cadence } from "../../pacing";
import { periodic, QuotaSplit, SHORTEST_MS, type WorkKind } from "../../pacing";
import { tableCache } from "../../state";
import {
  asking,
  type RebuildWatch,
  readerWithPriority,
  readSince,
  rebuilding,
  type SyncSession,
  type SyncSessionInput,
  scanning,
  schedulerOf,
  tablesOf,
} from "../shared";
import { Cycles } from "./cycles";

/**
 * One request in this many goes to the scan: about a sixth, and just enough for 300 pages in 10 minutes at 3 requests
 * in 1,025 ms. A delete then waits for at most 11 minutes if none of ten tables is larger than the others.
 */
const SWEEP_EVERY = 5.8;

interface RapidInput extends SyncSessionInput {
  schemaPollMs: number;
  /** Returns how often tables are polled and swept, within the current budget. */
  cadence: () => Pick<Cadence, "cycleMs" | "sweepEveryMs">;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
}

interface Rapid extends SyncSession<RapidInput> {
  cycles: Cycles;
}

/**
 * Polls and sweeps until the lease is over.
 *
 * @returns false, without having done anything, if the source does not tell the time
 * @throws BasetideError an error that ends the sync of the whole base: `sync_stopped`, `lease_lost`, or one that needs
 *   attention
 */
export async function rapidBase(input: RapidInput): Promise<boolean> {
  using taskGroup = new TaskGroup(input.reader.stop);
  const { stop } = taskGroup;
  const split = new QuotaSplit(input.reader.limiter, () => ({ every: SWEEP_EVERY, gapMs: 0 }), stop);
  const reader = readerWithPriority(input, split, "foreground", stop, "records");
  const backgroundReader = readerWithPriority(input, split, "background", stop);
  // Schema checks delay the scan, and not the polls.
  const schemaTracker = await SchemaTracker.open({ ...input, reader: backgroundReader });
  if (input.cache.sourceClock.now() === undefined) return false;
  const rapid: Rapid = {
    input,
    schemaTracker,
    cycles: new Cycles(),
    split,
    taskGroup,
    stop,
    background: { ...input, schemaTracker, reader: backgroundReader, onProgress: () => {} },
    reading: new Set(),
    sweeping: new Map(),
  };
  try {
    const scheduler = schedulerOf(rapid, new Notifier(), [
      checkingSchema(rapid),
      polling(rapid, reader),
      rebuilding(rapid, rebuildWatch(rapid)),
      // Each table is polled, or rebuilt.
      asking(rapid, () => true),
      scanning(rapid, { everyMs: () => input.cadence().sweepEveryMs }),
    ]);
    await taskGroup.run([keepCycling(rapid, reader), scheduler.run()]);
  } finally {
    // The cycle that was running is not completed.
    await endSync(input.replica, input.epoch);
  }
  return true;
}

/** A rebuild counts as a poll of its table, and turns the cycle into a rebuild. */
function rebuildWatch({ input, cycles }: Rapid): RebuildWatch {
  const { polledUntil, sourceClock } = input.cache;
  return {
    onBegin(tableId) {
      const askedAt = performance.now();
      // All data that is read from now on is newer than this time.
      const from = sourceClock.now();
      return (outcome) => {
        if (from !== undefined) polledUntil.set(tableId, from);
        cycles.polled(tableId, { ...outcome, askedAt }, "rebuild");
      };
    },
    onFailure(tableId, error) {
      if (input.cache.failing.has(tableId)) cycles.leave(tableId);
      else cycles.failed(tableId, error);
    },
  };
}

/** Runs the cycles, and reports each. */
async function keepCycling(rapid: Rapid, pollReader: Reader): Promise<void> {
  const { input, schemaTracker, cycles, stop } = rapid;
  const { replica, epoch } = input;
  // One that has aborted while the schema was read calls nothing back.
  stop.throwIfAborted();
  const ended = new Promise<void>((resolve) =>
    stop.addEventListener("abort", () => resolve(), { once: true }),
  );
  // Before the cycle begins: _sync_meta must not promise more than was polled.
  await markSyncStarted(replica, epoch);
  for (;;) {
    const before = { ...pollReader.counts };
    const { failing } = input.cache;
    const readable = schemaTracker.tables.filter(({ id }) => !failing.has(id));
    // If no table could be read, the cycle finds out whether that is still so.
    const polled = readable.length > 0 ? readable : schemaTracker.tables;
    const { report, begunAt, over } = cycles.begin(polled.map(({ id }) => id));
    await Promise.race([over, ended]);
    if (stop.aborted) throw new BasetideError("sync_stopped");
    report.requests = pollReader.counts.requests - before.requests;
    report.waitMs = Math.round(pollReader.counts.waitMs - before.waitMs);
    const [first] = failing.list();
    if (first) report.failing = failing.list();
    if (first && schemaTracker.tables.every(({ id }) => failing.has(id))) report.error = first;
    report.error ??= schemaTracker.refusal;
    if (report.error) await markSyncStarted(replica, epoch);
    else {
      await markSyncCompleted(replica, epoch, true);
      report.completedAt = new Date();
      if (report.inserted + report.updated > 0) await reportIssues(replica, report);
      if (report.kind === "rebuild")
        report.tables = tableCounts(schemaTracker.tables, input.cache, input.base);
    }
    await input.onRun(report);
    if (!report.error) await input.onRead(readSince(rapid, begunAt));
    const isFailing = readable.length === 0 && failing.size > 0;
    const dueInMs = isFailing ? Math.min(...failing.ids.map((id) => failing.dueInMs(id))) : 0;
    await wait(Math.max(0, dueInMs, SHORTEST_MS - (performance.now() - begunAt)), stop);
  }
}

function checkingSchema({ input, schemaTracker, cycles }: Rapid): WorkKind {
  const { cache, schemaPollMs } = input;
  async function run(): Promise<void> {
    const isDue = performance.now() - cache.schemaSeenAt >= schemaPollMs;
    await (isDue ? schemaTracker.look() : schemaTracker.refreshIfDue());
    cycles.keepOnly((id) => schemaTracker.table(id).source !== undefined);
  }
  return { ...periodic(run), onFailure: (_, error) => cycles.failed("", error) };
}

/** All tables, each of which is polled once in a cycle. One that is built is not polled until it is live. */
function polling({ input, schemaTracker, cycles, background }: Rapid, reader: Reader): WorkKind {
  const { cache } = input;
  const { failing } = cache;
  async function poll(tableId: string): Promise<void> {
    const { source, live } = schemaTracker.table(tableId);
    if (!source || !live) return;
    using watched = readerOfTable(reader, source, failing, () => cycles.leave(tableId));
    cache.pollStartedAt.set(tableId, performance.now());
    const one = { ...input, schemaTracker, reader: watched.reader };
    cycles.polled(tableId, await pollForChanges(one, source, tableCache(cache, live)));
  }
  return {
    most: Infinity,
    tables: tablesOf(background),
    *items() {
      const { cycleMs } = input.cadence();
      for (const { id } of schemaTracker.tables) {
        const { live, rebuild } = schemaTracker.table(id);
        if (!live || rebuild) continue;
        const dueInMs = (cache.pollStartedAt.get(id) ?? -Infinity) + cycleMs - performance.now();
        yield { id, dueInMs, run: () => poll(id) };
      }
    },
    onFailure(tableId, error) {
      if (failing.has(tableId)) cycles.leave(tableId);
      else cycles.failed(tableId, error);
    },
  };
}
