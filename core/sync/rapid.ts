/**
 * Rapid mode: each table is asked only for what was modified since it was last looked at, all tables in turn, for ever;
 * beside it a sweep goes over the tables one by one with a sixth of the requests, for deletes and computed fields.
 *
 * A sync, for `_sync_meta` and the run history, is a turn over all tables. The sweep has runs of its own.
 * The sweep takes one table at a time so that each is read once per pass and no delete waits for two. It may take ten
 * minutes and more: the lease ends between two of its tables, and where it stands is remembered from lease to lease.
 * A table that is to be rebuilt is not looked at until it is; the others are, with half of the requests.
 */
import type { Base, Progress, RunReport } from "../control";
import { asBasetideError, BasetideError, isBasetideError } from "../errors";
import { markSyncCompleted, markSyncStarted, type Replica } from "../replica";
import { wait } from "../wait";
import { linkedAbort } from "./linked-abort";
import { type Look, Shapes } from "./look";
import { lookForChanges } from "./look-for-changes";
import { type BaseMemory, tableMemory } from "./memory";
import { failurePauseMs } from "./pauses";
import { QuotaSplit } from "./quota-split";
import { keepRebuilding, keepSweeping } from "./rapid-beside";
import type { Reader } from "./reader";
import type { Sweep } from "./sweep";
import { isOvertaken, isWholeBases, mayMeanOldSchema } from "./sync-base";
import { tableCounts, tellIssues } from "./tell";
import { Turns } from "./turns";

/**
 * One request in so many is the sweep's: about a sixth, and just enough for 300 pages in 10 minutes at 3 requests in
 * 1,025 ms. A delete then waits for 11 minutes at most, where none of ten tables is larger than the others.
 */
const SWEEP_EVERY = 5.8;
/** A table is not looked at more often than this. */
const MIN_LOOK_INTERVAL_MS = 1000;
/** How often it is looked whether the schema is to be looked at, or a table is there to be worked on. */
const TICK_MS = 250;

export interface RapidInput {
  base: Base;
  replica: Replica;
  epoch: number;
  memory: BaseMemory;
  reader: Omit<Reader, "counts" | "onFirstRequest">;
  schemaPollMs: number;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /** Has the lease lasted for long enough? */
  isOver: () => boolean;
  /** Keeps the report of a turn, or of a sweep beside. */
  onRun: (report: RunReport) => Promise<void>;
  /** All tables' journals have been read, and every ticket in use been taken, after `at` (performance.now()). */
  onRead: (at: number) => Promise<void>;
  onProgress: (progress: Progress) => void;
  onShapeChange?: Look["onShapeChange"];
  onRequestedLook?: Look["onRequestedLook"];
}

/** What goes on at the same time, and shares a fate: the first to fail ends all. */
export interface Rapid {
  input: RapidInput;
  shapes: Shapes;
  turns: Turns;
  split: QuotaSplit;
  stop: AbortSignal;
  /** For what reads whole tables beside the looks. */
  beside: Sweep;
  /** When each of the readings that are under way beside began (performance.now()). */
  reading: Set<number>;
  /** Ends everything: the lease is over, or something has failed that is the whole base's. */
  end(failure?: unknown): void;
}

/**
 * Looks and sweeps until the lease is over.
 *
 * @returns false, having done nothing, where the source does not tell the time
 * @throws BasetideError what ends the sync of the whole base: `sync_stopped`, `lease_lost`, what needs attention
 */
export async function rapidBase(input: RapidInput): Promise<boolean> {
  using abort = linkedAbort(input.reader.stop);
  let failure: BasetideError | undefined;
  const end = (caught?: unknown) => {
    const error = caught === undefined ? undefined : asBasetideError(caught);
    // What is stopped because of another's failure says nothing; a lost lease is always told.
    if (!abort.signal.aborted || error?.code === "lease_lost") failure = error;
    abort.abort();
  };
  const split = new QuotaSplit(input.reader.ledger, SWEEP_EVERY, abort.signal);
  const reader = readerOf(input, split, "looks", abort.signal);
  const beside = readerOf(input, split, "beside", abort.signal);
  const { settings } = input.base;
  // Its looks at the schema delay the sweep, and not the looks at tables.
  const shapes = await Shapes.open({ ...input, reader: beside, settings, signal: abort.signal });
  if (input.memory.sourceClock.now() === undefined) return false;
  const rapid: Rapid = {
    input,
    shapes,
    turns: new Turns(),
    split,
    stop: abort.signal,
    beside: { ...input, shapes, reader: beside, onProgress: () => {} },
    reading: new Set(),
    end,
  };
  const together = [
    keepTurning(rapid, reader),
    keepLooking(rapid, reader),
    keepRebuilding(rapid),
    keepSweeping(rapid),
  ];
  await Promise.all(together.map((work) => work.catch(end)));
  if (failure) throw failure;
  if (input.reader.stop.aborted) throw new BasetideError("sync_stopped");
  return true;
}

function readerOf(input: RapidInput, split: QuotaSplit, lane: "looks" | "beside", stop: AbortSignal): Reader {
  const counts = { requests: 0, waitMs: 0 };
  return { ...input.reader, ledger: split.lane(lane), stop, counts, onFirstRequest: () => {} };
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
    if (!report.error) await input.onRead(Math.min(begunAt, ...rapid.reading));
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
        const looking = keepLookingAt(rapid, reader, id).catch(rapid.end);
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
        await wait(failurePauseMs(++failures), stop);
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
    if (!live || rebuild) {
      await wait(TICK_MS, stop);
      continue;
    }
    const startedAt = performance.now();
    try {
      const found = await lookForChanges(looking, source, tableMemory(memory, live));
      failures = 0;
      turns.looked(tableId, found);
      await wait(Math.max(0, MIN_LOOK_INTERVAL_MS - (performance.now() - startedAt)), stop);
    } catch (caught) {
      const error = asBasetideError(caught);
      // The source says "forbidden" of a table that is gone, too: only a look at the schema can tell.
      if (mayMeanOldSchema(error) && (await isOvertaken(shapes, tableId, shape))) continue;
      if (isWholeBases(error)) throw error;
      if (isBasetideError(error, "source_schema_changed") && shapes.table(tableId).rebuild) continue;
      input.reader.log.debug({ error, tableId }, "table not looked at");
      turns.failed(tableId, error);
      await wait(failurePauseMs(++failures), stop);
    }
  }
}
