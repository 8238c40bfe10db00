/**
 * Works on the dirty set, table by table: removes destroyed records, reads records again, or sweeps the table if that
 * takes no more calls.
 */
import type { TaskGroup } from "../../../async";
import { asBasetideError } from "../../../errors";
import { onlyAddsColumns } from "../../../replica";
import { readerOfTable, type TableOutcome, tableFailed } from "../../engine";
import { failurePauseMs } from "../../pacing";
import { type DirtyBatch, MAX_BATCH, MassChange } from "../../state";
import type { SyncSessionInput } from "../shared";
import type { LiveBatches } from "./batches";
import { isStrangeId, type Rereading, removeDestroyed, reread, settledByReading } from "./reread";

/**
 * Tables that are worked on at once: latency should not be the limit, and no table should wait behind a bulk edit.
 */
const MAX_JOBS = 4;
const LONGEST_WAIT_MS = 60_000;

interface Work extends Rereading {
  batches: Pick<LiveBatches, "started" | "tally" | "failed">;
  /** The tables that are being worked on, by id. */
  jobs: Map<string, Promise<void>>;
  /** Returns the number of records of a table, if it is known. */
  sizeOf: (tableId: string) => number | undefined;
  /** Sweeps a table; returns undefined if it is gone. */
  sweep: (tableId: string) => Promise<TableOutcome | undefined>;
  taskGroup: Pick<TaskGroup, "end" | "stop">;
}

interface TableState {
  /** Until then the table is not worked on, because of an error that is not the table's own. */
  untilMs: number;
  failures: number;
  massChange: MassChange;
}

/** Works on waiting entries, forever. */
export async function keepWorking(work: Work): Promise<void> {
  const { dirty, jobs, taskGroup } = work;
  const { failing } = work.foreground.cache;
  const states = new Map<string, TableState>();
  try {
    for (;;) {
      let nextMs = Math.min(LONGEST_WAIT_MS, dirty.resumeDeferred(performance.now()));
      for (const tableId of dirty.tables()) {
        const state = states.get(tableId) ?? { failures: 0, untilMs: 0, massChange: new MassChange() };
        states.set(tableId, state);
        const pauseMs = Math.max(state.untilMs - performance.now(), failing.dueInMs(tableId));
        if (pauseMs > 0) nextMs = Math.min(nextMs, pauseMs);
        // A table that fails leaves its place to others.
        const places = [...jobs.keys()].filter((id) => !failing.has(id)).length;
        if (places >= MAX_JOBS || jobs.has(tableId) || pauseMs > 0 || !isReady(work, tableId)) continue;
        const job = workOn(work, tableId, state)
          .catch((error) => taskGroup.end(error))
          .finally(() => {
            jobs.delete(tableId);
            dirty.wake.work.notify();
          });
        jobs.set(tableId, job);
      }
      await dirty.wake.work.wait(nextMs, taskGroup.stop);
    }
  } finally {
    await Promise.all(jobs.values());
  }
}

/**
 * Returns whether the table is live with the source's schema. If it is not yet, it is being rebuilt or looked for by a
 * schema check. A table that only gets new columns is worked on meanwhile, unless it must be read completely: the
 * rebuild does that. The records of a table that is not copied only name their dependents, at any time.
 */
function isReady(work: Work, tableId: string): boolean {
  const { source, live, rebuild, isLeftOut } = work.foreground.schemaTracker.table(tableId);
  if (work.dirty.isSuspect(tableId)) return false;
  if (isLeftOut) return true;
  if (!source || !live) return false;
  return !rebuild || (onlyAddsColumns(live.spec, rebuild) && !isToBeSwept(work, tableId));
}

async function workOn(work: Work, tableId: string, state: TableState): Promise<void> {
  const { dirty, batches } = work;
  const { schemaTracker, reader, cache } = work.foreground;
  const { failing } = cache;
  const shape = schemaTracker.table(tableId);
  let batch: DirtyBatch | undefined;
  try {
    if (shape.isLeftOut) {
      const settle = await settledByReading(work, tableId);
      return await settle({ lost: [] });
    }
    const table = { id: tableId, name: shape.source?.name ?? tableId };
    using named = readerOfTable(work.namedReader, table, failing);
    using followed = readerOfTable(reader, table, failing);
    const watched = {
      ...work,
      namedReader: named.reader,
      foreground: { ...work.foreground, reader: followed.reader },
    };
    batch = dirty.takeDestroyed(tableId);
    if (batch) await removeDestroyed(watched, batch);
    if (isToBeSwept(work, tableId)) {
      if (schemaTracker.table(tableId).rebuild) return;
      await batches.started();
      batches.tally((await work.sweep(tableId)) ?? {});
    } else {
      batch = dirty.take(tableId);
      if (batch) await reread(watched, batch, state.massChange);
    }
    state.failures = 0;
    failing.read(tableId);
  } catch (caught) {
    const known = asBasetideError(caught);
    if (batch && isStrangeId(known)) {
      reader.log.warn({ error: known, tableId }, "the feed reports records that cannot be read");
      return dirty.ack(batch, [...batch.entries.keys()]);
    }
    if (batch) dirty.requeue(batch);
    const error = await tableFailed({ schemaTracker, cache, log: reader.log }, tableId, shape, known);
    if (!error || failing.has(tableId)) return;
    state.untilMs = performance.now() + failurePauseMs(++state.failures, error);
    await batches.failed(error);
  }
}

/**
 * Returns whether reading the waiting records by id would take at least as many calls as a sweep of the table.
 * Destroyed records do not count: a sweep requests those by id, too.
 */
function isToBeSwept({ dirty, sizeOf }: Work, tableId: string): boolean {
  const { records, destroyed, isWhole } = dirty.counts(tableId);
  if (isWhole) return true;
  const size = sizeOf(tableId);
  const calls = Math.ceil((records - destroyed) / MAX_BATCH);
  return size !== undefined && calls > 1 && calls >= Math.ceil(size / MAX_BATCH);
}

/** Returns the number of records of the table, if it is known. */
export function knownSize(
  { base, cache }: Pick<SyncSessionInput, "base" | "cache">,
  tableId: string,
): number | undefined {
  const known = cache.tables.get(tableId);
  if (known?.isComplete) return known.fingerprints.size;
  return base.tables.find((table) => table.source_id === tableId)?.records;
}
