/**
 * Rapid mode: each table is asked only for what was modified since it was last looked at, all tables in turn, for ever;
 * beside it a sweep goes over the tables one by one with a sixth of the requests, for deletes and computed fields.
 *
 * A sync, for `_sync_meta` and the run history, is a turn over all tables. The sweep has runs of its own.
 * The sweep takes one table at a time so that each is read once per pass and no delete waits for two. It may take ten
 * minutes and more: the lease ends between two of its tables, and where it stands is remembered from lease to lease.
 * A table that is to be rebuilt is not looked at until it is; the others are, with half of the requests.
 */

import { Fate, wait } from "../../../async";
import { asBasetideError, BasetideError, isBasetideError } from "../../../errors";
import { markSyncCompleted, markSyncStarted } from "../../../replica";
import type { Reader } from "../../engine";
import {
  endSync,
  isOvertaken,
  isWholeBases,
  lookForChanges,
  mayMeanOldSchema,
  Shapes,
  tableCounts,
  tellIssues,
  typeSettingsOf,
} from "../../engine";
import type { Cadence } from "../../pacing";
import { failurePauseMs, QuotaSplit } from "../../pacing";
import { tableMemory } from "../../state";
import {
  keepRebuilding,
  keepSweeping,
  laneReader,
  type RebuildWatch,
  readSince,
  sweptAgoMs,
  type Together,
  type TogetherInput,
} from "../shared";
import { Turns } from "./cycles";

/**
 * One request in so many is the sweep's: about a sixth, and just enough for 300 pages in 10 minutes at 3 requests in
 * 1,025 ms. A delete then waits for 11 minutes at most, where none of ten tables is larger than the others.
 */
const SWEEP_EVERY = 5.8;
/** A table is not looked at more often than this. */
const MIN_LOOK_INTERVAL_MS = 1000;
/** How often it is looked whether the schema is to be looked at, or a table is there to be worked on. */
const TICK_MS = 250;

export interface RapidInput extends TogetherInput {
  schemaPollMs: number;
  /** How often tables are looked at, and swept, as the budget is now. */
  cadence: () => Pick<Cadence, "turnMs" | "sweepEveryMs">;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
}

interface Rapid extends Together<RapidInput> {
  turns: Turns;
}

/**
 * Looks and sweeps until the lease is over.
 *
 * @returns false, having done nothing, where the source does not tell the time
 * @throws BasetideError what ends the sync of the whole base: `sync_stopped`, `lease_lost`, what needs attention
 */
export async function rapidBase(input: RapidInput): Promise<boolean> {
  using fate = new Fate(input.reader.stop);
  const { stop } = fate;
  const split = new QuotaSplit(input.reader.ledger, () => ({ every: SWEEP_EVERY, gapMs: 0 }), stop);
  const reader = laneReader(input, split, "front", stop, "records");
  const besideReader = laneReader(input, split, "beside", stop);
  const settings = typeSettingsOf(input);
  // Its looks at the schema delay the sweep, and not the looks at tables.
  const shapes = await Shapes.open({ ...input, reader: besideReader, settings, signal: stop });
  if (input.memory.sourceClock.now() === undefined) return false;
  const rapid: Rapid = {
    input,
    shapes,
    turns: new Turns(),
    split,
    fate,
    stop,
    beside: { ...input, shapes, reader: besideReader, onProgress: () => {} },
    reading: new Set(),
    sweeping: new Map(),
  };
  try {
    await fate.share([
      keepTurning(rapid, reader),
      keepLooking(rapid, reader),
      keepRebuilding(rapid, rebuildWatch(rapid)),
      keepSweeping(rapid, {
        everyMs: () => input.cadence().sweepEveryMs,
        lastAgoMs: () => sweptAgoMs(input.base),
      }),
    ]);
  } finally {
    // The turn that was under way is not completed.
    await endSync(input.replica, input.epoch);
  }
  return true;
}

/** A rebuild counts as a look at its table, which makes the turn a rebuild. */
function rebuildWatch({ input, turns }: Rapid): RebuildWatch {
  const { lookedUntil, sourceClock } = input.memory;
  return {
    onBegin(tableId) {
      const askedAt = performance.now();
      // What is read from now on is newer than this.
      const from = sourceClock.now();
      return (outcome) => {
        if (from !== undefined) lookedUntil.set(tableId, from);
        turns.looked(tableId, { ...outcome, askedAt }, "rebuild");
      };
    },
    onFailure: (tableId, error) => turns.failed(tableId, error),
  };
}

/** Counts the turns, and says of each what it did. */
async function keepTurning(rapid: Rapid, looks: Reader): Promise<void> {
  const { input, shapes, turns, stop } = rapid;
  const { replica, epoch } = input;
  const ended = new Promise<void>((resolve) =>
    stop.addEventListener("abort", () => resolve(), { once: true }),
  );
  for (;;) {
    // Before the turn begins: _sync_meta must not promise more than was looked at.
    await markSyncStarted(replica, epoch);
    const before = { ...looks.counts };
    const { report, begunAt, over } = turns.begin(shapes.tables.map(({ id }) => id));
    await Promise.race([over, ended]);
    if (stop.aborted) throw new BasetideError("sync_stopped");
    report.requests = looks.counts.requests - before.requests;
    report.waitMs = Math.round(looks.counts.waitMs - before.waitMs);
    if (!report.error) {
      await markSyncCompleted(replica, epoch);
      report.completedAt = new Date();
      if (report.inserted + report.updated > 0) await tellIssues(replica, report);
      if (report.kind === "rebuild") report.tables = tableCounts(shapes.tables, input.memory, input.base);
    }
    await input.onRun(report);
    if (!report.error) await input.onRead(readSince(rapid, begunAt));
    await wait(Math.max(0, MIN_LOOK_INTERVAL_MS - (performance.now() - begunAt)), stop);
  }
}

/** Looks at the schema when it is time, and keeps every table of it being looked at. */
async function keepLooking(rapid: Rapid, reader: Reader): Promise<void> {
  const { input, shapes, stop } = rapid;
  const tables = new Map<string, Promise<void>>();
  try {
    for (let failures = 0; ; ) {
      for (const { id } of shapes.tables) {
        if (tables.has(id)) continue;
        const looking = keepLookingAt(rapid, reader, id).catch((error) => rapid.fate.end(error));
        tables.set(
          id,
          looking.finally(() => tables.delete(id)),
        );
      }
      await wait(TICK_MS, stop);
      try {
        const isDue = performance.now() - input.memory.schemaSeenAt >= input.schemaPollMs;
        await (isDue ? shapes.lookAgain() : shapes.tend());
        failures = 0;
      } catch (caught) {
        const error = asBasetideError(caught);
        if (isWholeBases(error)) throw error;
        rapid.turns.failed("", error);
        await wait(failurePauseMs(++failures, error), stop);
      }
    }
  } finally {
    await Promise.all(tables.values());
  }
}

/** Looks at one table for as long as the source has it. */
async function keepLookingAt(rapid: Rapid, reader: Reader, tableId: string): Promise<void> {
  const { input, shapes, turns, stop } = rapid;
  const { memory } = input;
  const looking = { ...input, shapes, reader };
  for (let failures = 0; ; ) {
    const shape = shapes.table(tableId);
    const { source, live, rebuild } = shape;
    if (!source) return turns.leave(tableId);
    const begunAt = memory.lookBegunAt.get(tableId) ?? -Infinity;
    const dueInMs = begunAt + input.cadence().turnMs - performance.now();
    if (!live || rebuild || dueInMs > 0) {
      await wait(dueInMs > 0 ? Math.min(TICK_MS, dueInMs) : TICK_MS, stop);
      continue;
    }
    try {
      memory.lookBegunAt.set(tableId, performance.now());
      const found = await lookForChanges(looking, source, tableMemory(memory, live));
      failures = 0;
      turns.looked(tableId, found);
    } catch (caught) {
      const error = asBasetideError(caught);
      // The source says "forbidden" of a table that is gone, too: only a look at the schema can tell.
      if (mayMeanOldSchema(error) && (await isOvertaken(shapes, tableId, shape))) continue;
      if (isWholeBases(error)) throw error;
      if (isBasetideError(error, "source_schema_changed") && shapes.table(tableId).rebuild) continue;
      input.reader.log.debug({ error, tableId }, "table not looked at");
      turns.failed(tableId, error);
      await wait(failurePauseMs(++failures, error), stop);
    }
  }
}
