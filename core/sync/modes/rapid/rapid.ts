/**
 * Rapid mode: each table is asked only for what was modified since it was last looked at, all tables in cycle, for ever;
 * beside it a sweep goes over the tables one by one with a sixth of the requests, for deletes and computed fields.
 *
 * A sync, for `_sync_meta` and the run history, is a cycle over all tables. The sweep has runs of its own.
 * The sweep takes one table at a time so that each is read once per pass and no delete waits for two. It may take ten
 * minutes and more: the lease ends between two of its tables, and where it stands is remembered from lease to lease.
 * A table that is to be rebuilt is not looked at until it is; the others are, with half of the requests.
 */

import { TaskGroup, wait } from "../../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../../errors";
import { markSyncCompleted, markSyncStarted } from "../../../replica";
import type { Reader } from "../../engine";
import {
  endSync,
  isOvertaken,
  isWholeBases,
  mayMeanOldSchema,
  pollForChanges,
  reportIssues,
  SchemaTracker,
  tableCounts,
  typeSettingsOf,
} from "../../engine";
import type { Cadence } from "../../pacing";
import { failurePauseMs, QuotaSplit } from "../../pacing";
import { tableCache } from "../../state";
import {
  keepRebuilding,
  keepSweeping,
  type RebuildWatch,
  readerWithPriority,
  readSince,
  type SyncSession,
  type SyncSessionInput,
  sweptAgoMs,
} from "../shared";
import { Cycles } from "./cycles";

/**
 * One request in so many is the sweep's: about a sixth, and just enough for 300 pages in 10 minutes at 3 requests in
 * 1,025 ms. A delete then waits for 11 minutes at most, where none of ten tables is larger than the others.
 */
const SWEEP_EVERY = 5.8;
/** A table is not looked at more often than this. */
const MIN_POLL_INTERVAL_MS = 1000;
/** How often it is looked whether the schema is to be looked at, or a table is there to be worked on. */
const TICK_MS = 250;

export interface RapidInput extends SyncSessionInput {
  schemaPollMs: number;
  /** How often tables are looked at, and swept, as the budget is now. */
  cadence: () => Pick<Cadence, "cycleMs" | "sweepEveryMs">;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
}

interface Rapid extends SyncSession<RapidInput> {
  cycles: Cycles;
}

/**
 * Looks and sweeps until the lease is over.
 *
 * @returns false, having done nothing, where the source does not tell the time
 * @throws BasetideError what ends the sync of the whole base: `sync_stopped`, `lease_lost`, what needs attention
 */
export async function rapidBase(input: RapidInput): Promise<boolean> {
  using taskGroup = new TaskGroup(input.reader.stop);
  const { stop } = taskGroup;
  const split = new QuotaSplit(input.reader.limiter, () => ({ every: SWEEP_EVERY, gapMs: 0 }), stop);
  const reader = readerWithPriority(input, split, "foreground", stop, "records");
  const backgroundReader = readerWithPriority(input, split, "background", stop);
  const settings = typeSettingsOf(input);
  // Its looks at the schema delay the sweep, and not the looks at tables.
  const schemaTracker = await SchemaTracker.open({
    ...input,
    reader: backgroundReader,
    settings,
    signal: stop,
  });
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
    await taskGroup.run([
      keepCycling(rapid, reader),
      keepCheckingSchema(rapid, reader),
      keepRebuilding(rapid, rebuildWatch(rapid)),
      keepSweeping(rapid, {
        everyMs: () => input.cadence().sweepEveryMs,
        lastAgoMs: () => sweptAgoMs(input.base),
      }),
    ]);
  } finally {
    // The cycle that was under way is not completed.
    await endSync(input.replica, input.epoch);
  }
  return true;
}

/** A rebuild counts as a look at its table, which makes the cycle a rebuild. */
function rebuildWatch({ input, cycles }: Rapid): RebuildWatch {
  const { polledUntil, sourceClock } = input.cache;
  return {
    onBegin(tableId) {
      const askedAt = performance.now();
      // What is read from now on is newer than this.
      const from = sourceClock.now();
      return (outcome) => {
        if (from !== undefined) polledUntil.set(tableId, from);
        cycles.polled(tableId, { ...outcome, askedAt }, "rebuild");
      };
    },
    onFailure: (tableId, error) => cycles.failed(tableId, error),
  };
}

/** Counts the cycles, and says of each what it did. */
async function keepCycling(rapid: Rapid, pollReader: Reader): Promise<void> {
  const { input, schemaTracker, cycles, stop } = rapid;
  const { replica, epoch } = input;
  const ended = new Promise<void>((resolve) =>
    stop.addEventListener("abort", () => resolve(), { once: true }),
  );
  for (;;) {
    // Before the cycle begins: _sync_meta must not promise more than was looked at.
    await markSyncStarted(replica, epoch);
    const before = { ...pollReader.counts };
    const { report, begunAt, over } = cycles.begin(schemaTracker.tables.map(({ id }) => id));
    await Promise.race([over, ended]);
    if (stop.aborted) throw new BasetideError("sync_stopped");
    report.requests = pollReader.counts.requests - before.requests;
    report.waitMs = Math.round(pollReader.counts.waitMs - before.waitMs);
    if (!report.error) {
      await markSyncCompleted(replica, epoch);
      report.completedAt = new Date();
      if (report.inserted + report.updated > 0) await reportIssues(replica, report);
      if (report.kind === "rebuild")
        report.tables = tableCounts(schemaTracker.tables, input.cache, input.base);
    }
    await input.onRun(report);
    if (!report.error) await input.onRead(readSince(rapid, begunAt));
    await wait(Math.max(0, MIN_POLL_INTERVAL_MS - (performance.now() - begunAt)), stop);
  }
}

/** Looks at the schema when it is time, and keeps every table of it being looked at. */
async function keepCheckingSchema(rapid: Rapid, reader: Reader): Promise<void> {
  const { input, schemaTracker, stop } = rapid;
  const tables = new Map<string, Promise<void>>();
  try {
    for (let failures = 0; ; ) {
      for (const { id } of schemaTracker.tables) {
        if (tables.has(id)) continue;
        const polling = keepPolling(rapid, reader, id).catch((error) => rapid.taskGroup.end(error));
        tables.set(
          id,
          polling.finally(() => tables.delete(id)),
        );
      }
      await wait(TICK_MS, stop);
      try {
        const isDue = performance.now() - input.cache.schemaSeenAt >= input.schemaPollMs;
        await (isDue ? schemaTracker.refresh() : schemaTracker.refreshIfDue());
        failures = 0;
      } catch (caught) {
        const error = asBasetideError(caught);
        if (isWholeBases(error)) throw error;
        rapid.cycles.failed("", error);
        await wait(failurePauseMs(++failures, error), stop);
      }
    }
  } finally {
    await Promise.all(tables.values());
  }
}

/** Looks at one table for as long as the source has it. */
async function keepPolling(rapid: Rapid, reader: Reader, tableId: string): Promise<void> {
  const { input, schemaTracker, cycles, stop } = rapid;
  const { cache } = input;
  const polling = { ...input, schemaTracker, reader };
  for (let failures = 0; ; ) {
    const shape = schemaTracker.table(tableId);
    const { source, live, rebuild } = shape;
    if (!source) return cycles.leave(tableId);
    const begunAt = cache.pollStartedAt.get(tableId) ?? -Infinity;
    const dueInMs = begunAt + input.cadence().cycleMs - performance.now();
    if (!live || rebuild || dueInMs > 0) {
      await wait(dueInMs > 0 ? Math.min(TICK_MS, dueInMs) : TICK_MS, stop);
      continue;
    }
    try {
      cache.pollStartedAt.set(tableId, performance.now());
      const found = await pollForChanges(polling, source, tableCache(cache, live));
      failures = 0;
      cycles.polled(tableId, found);
    } catch (caught) {
      const error = asBasetideError(caught);
      // The source says "forbidden" of a table that is gone, too: only a schema check can tell.
      if (mayMeanOldSchema(error) && (await isOvertaken(schemaTracker, tableId, shape))) continue;
      if (isWholeBases(error)) throw error;
      if (isBasetideError(error, "source_schema_changed") && schemaTracker.table(tableId).rebuild) continue;
      input.reader.log.debug({ error, tableId }, "table not looked at");
      cycles.failed(tableId, error);
      await wait(failurePauseMs(++failures, error), stop);
    }
  }
}
