/**
 * Works on the dirty set, table by table: removes destroyed records, reads records again, or sweeps the table if that
 * takes no more calls.
 */
import { onlyAddsColumns } from "../../../replica";
import { readerOfTable, type TableOutcome } from "../../engine";
import { MOST_TABLES, type WorkKind } from "../../pacing";
import { type DirtyBatch, MAX_BATCH, MassChange } from "../../state";
import { type SyncSessionInput, tablesOf } from "../shared";
import type { LiveBatches } from "./batches";
import { isStrangeId, type Rereading, removeDestroyed, reread, settledByReading } from "./reread";

interface Work extends Rereading {
  batches: Pick<LiveBatches, "started" | "tally" | "failed">;
  /** Returns the number of records of a table, if it is known. */
  sizeOf: (tableId: string) => number | undefined;
  /** Sweeps a table; returns undefined if it is gone. */
  sweep: (tableId: string) => Promise<TableOutcome | undefined>;
}

/** The tables with entries that wait. */
export function working(work: Work): WorkKind {
  const { dirty, batches } = work;
  const { failing } = work.foreground.cache;
  const massChanges = new Map<string, MassChange>();
  return {
    most: MOST_TABLES,
    tables: tablesOf(work.foreground),
    *items() {
      dirty.resumeDeferred(performance.now());
      for (const id of dirty.tables()) {
        if (!isReady(work, id)) continue;
        const massChange = massChanges.getOrInsertComputed(id, () => new MassChange());
        yield { id, run: () => workOn(work, id, massChange) };
      }
    },
    async onFailure(tableId, error) {
      if (!failing.has(tableId)) await batches.failed(error);
    },
  };
}

/**
 * Returns whether the table is live with the source's schema. If it is not yet, it is being rebuilt or looked for by a
 * schema check, unless the schema cannot be read. A table that only gets new columns is worked on meanwhile, unless it must be read completely: the
 * rebuild does that. The records of a table that is not copied only name their dependents, at any time.
 */
function isReady(work: Work, tableId: string): boolean {
  const { schemaTracker, cache } = work.foreground;
  const { source, live, rebuild, isLeftOut } = schemaTracker.table(tableId);
  if (work.dirty.isSuspect(tableId) && !cache.schemaError) return false;
  if (isLeftOut) return true;
  if (!source || !live) return false;
  return !rebuild || (onlyAddsColumns(live.spec, rebuild) && !isToBeSwept(work, tableId));
}

async function workOn(work: Work, tableId: string, massChange: MassChange): Promise<void> {
  const { dirty, batches } = work;
  const { schemaTracker, reader, cache } = work.foreground;
  const { source, isLeftOut } = schemaTracker.table(tableId);
  let batch: DirtyBatch | undefined;
  try {
    if (isLeftOut) {
      const settle = await settledByReading(work, tableId);
      return await settle({ lost: [] });
    }
    const table = { id: tableId, name: source?.name ?? tableId };
    using named = readerOfTable(work.namedReader, table, cache.failing);
    using followed = readerOfTable(reader, table, cache.failing);
    const watched = {
      ...work,
      namedReader: named.reader,
      foreground: { ...work.foreground, reader: followed.reader },
    };
    await schemaTracker.ownTable(tableId);
    batch = dirty.takeDestroyed(tableId);
    if (batch) await removeDestroyed(watched, batch);
    if (isToBeSwept(work, tableId)) {
      if (schemaTracker.table(tableId).rebuild) return;
      await batches.started();
      batches.tally((await work.sweep(tableId)) ?? {});
    } else {
      batch = dirty.take(tableId);
      if (batch) await reread(watched, batch, massChange);
    }
  } catch (caught) {
    if (batch && isStrangeId(caught)) {
      reader.log.warn({ error: caught, tableId }, "the feed reports records that cannot be read");
      return dirty.ack(batch, [...batch.entries.keys()]);
    }
    if (batch) dirty.requeue(batch);
    throw caught;
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
