/**
 * Works on the dirty set, table by table: removes destroyed records, reads records again, or sweeps the table if that
 * takes no more calls.
 */
import { asBasetideError, isBasetideError } from "../../../errors";
import { onlyAddsColumns } from "../../../replica";
import { isOvertaken, isWholeBases, mayMeanOldSchema } from "../../engine";
import { failurePauseMs } from "../../pacing";
import { type DirtyBatch, MAX_BATCH } from "../../state";
import { sweepExclusively } from "../shared";
import type { Live } from "./live";
import { isStrangeId, removeDestroyed, reread } from "./reread";

/**
 * Tables that are worked on at once: latency should not be the limit, and no table should wait behind a bulk edit.
 */
const MAX_JOBS = 4;
const LONGEST_WAIT_MS = 60_000;

/** Keeps a table from being worked on for a while after a failure. */
interface Pause {
  failures: number;
  untilMs: number;
}

/** Works on waiting entries, forever. */
export async function keepWorking(live: Live): Promise<void> {
  const { dirty, wake, stop, taskGroup } = live;
  const jobs = new Map<string, Promise<void>>();
  const pauses = new Map<string, Pause>();
  try {
    for (;;) {
      let nextMs = Math.min(LONGEST_WAIT_MS, dirty.resumeDeferred(performance.now()));
      for (const tableId of dirty.tables()) {
        const pauseMs = (pauses.get(tableId)?.untilMs ?? 0) - performance.now();
        if (pauseMs > 0) nextMs = Math.min(nextMs, pauseMs);
        if (jobs.size >= MAX_JOBS || jobs.has(tableId) || pauseMs > 0 || !isReady(live, tableId)) continue;
        const job = workOn(live, tableId, pauses)
          .catch((error) => taskGroup.end(error))
          .finally(() => {
            jobs.delete(tableId);
            live.isWorking = jobs.size > 0;
            wake.notify();
          });
        jobs.set(tableId, job);
        live.isWorking = true;
      }
      await wake.wait(nextMs, stop);
    }
  } finally {
    await Promise.all(jobs.values());
  }
}

/**
 * Returns whether the table is live with the source's schema. If it is not yet, it is being rebuilt or looked for by a
 * schema check. A table that only gets new columns is worked on meanwhile, unless it must be read completely: the
 * rebuild does that.
 */
function isReady(one: Live, tableId: string): boolean {
  const { schemaTracker, dirty } = one;
  const { source, live, rebuild } = schemaTracker.table(tableId);
  if (!source || !live || dirty.isSuspect(tableId)) return false;
  return !rebuild || (onlyAddsColumns(live.spec, rebuild) && !isToBeSwept(one, tableId));
}

async function workOn(live: Live, tableId: string, pauses: Map<string, Pause>): Promise<void> {
  const { schemaTracker, dirty, input } = live;
  const shape = schemaTracker.table(tableId);
  let batch: DirtyBatch | undefined;
  try {
    batch = dirty.takeDestroyed(tableId);
    if (batch) await removeDestroyed(live, batch);
    if (isToBeSwept(live, tableId)) {
      if (schemaTracker.table(tableId).rebuild) return;
      await sweepNow(live, tableId);
      return void pauses.delete(tableId);
    }
    batch = dirty.take(tableId);
    if (batch) await reread(live, batch);
    pauses.delete(tableId);
  } catch (caught) {
    const error = asBasetideError(caught);
    if (batch && isStrangeId(error)) {
      input.reader.log.warn({ error, tableId }, "the feed names records that cannot be read");
      return dirty.ack(batch, [...batch.entries.keys()]);
    }
    if (batch) dirty.requeue(batch);
    if (mayMeanOldSchema(error) && (await isOvertaken(schemaTracker, tableId, shape))) return;
    if (isWholeBases(error)) throw error;
    if (isBasetideError(error, "source_schema_changed") && schemaTracker.table(tableId).rebuild) return;
    input.reader.log.debug({ error, tableId }, "changed records not read");
    const failures = (pauses.get(tableId)?.failures ?? 0) + 1;
    pauses.set(tableId, { failures, untilMs: performance.now() + failurePauseMs(failures, error) });
    await live.batches.failed(error);
  } finally {
    live.settled();
  }
}

/**
 * Returns whether reading the waiting records by id would take at least as many calls as a sweep of the table.
 * Destroyed records do not count: a sweep requests those by id, too.
 */
function isToBeSwept({ dirty, input }: Live, tableId: string): boolean {
  const { records, destroyed, isWhole } = dirty.counts(tableId);
  if (isWhole) return true;
  const size = sizeOf(input, tableId);
  const calls = Math.ceil((records - destroyed) / MAX_BATCH);
  return size !== undefined && calls > 1 && calls >= Math.ceil(size / MAX_BATCH);
}

/** Returns the number of records of the table, if it is known. */
export function sizeOf({ cache, base }: Live["input"], tableId: string): number | undefined {
  const known = cache.tables.get(tableId);
  if (known?.isComplete) return known.fingerprints.size;
  return base.tables.find((table) => table.source_id === tableId)?.records;
}

async function sweepNow(live: Live, tableId: string): Promise<void> {
  await live.batches.started();
  const outcome = await sweepExclusively(live, live.foreground, tableId, true);
  if (outcome) live.batches.tally(outcome);
}
