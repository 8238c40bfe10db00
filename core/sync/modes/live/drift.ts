/**
 * Compares a few records that the source reports as recently modified with the rows in SQL.
 *
 * A webhook may look healthy and report nothing. One call to the source finds the changes that it omits. Rows that differ
 * are corrected at once. Whether the feed reports the changes all the same is judged like that of changes that a sweep has
 * found (`MissedChanges`).
 *
 * M1. A row counts as drifted only if its own cells differ and, since the source showed the record, no process has applied
 * it or knows that it changed. The replica itself decides that: an image that was requested at that time must still win.
 */

import { asBasetideError } from "../../../errors";
import { type ColumnSpec, differingRows, mapRecords, traitsOf } from "../../../replica";
import type { RecordPage, SourceConnection, SourceTable } from "../../../source";
import { applyRecords, CLOCKS_OVERLAP_MS, metered, type Sweep } from "../../engine";
import { RECENT_MS } from "../../pacing";
import { fingerprintIn, isOfTable, type TableCache, tableCache } from "../../state";
import type { LiveFeed } from "./feed";

export interface SourceComparison
  extends Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache"> {
  feed: LiveFeed;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /**
   * Returns whether the record is known to have changed and is not in the replica yet. True until its image has been
   * applied.
   */
  isPending: (tableId: string, recordId: string) => boolean;
  /** Called with records whose rows differed, and are correct now. The feed may still report them. */
  onDifference: (tableId: string, recordIds: string[]) => void;
}

/**
 * Compares one table: the one that the feed has reported most recently, or the one whose comparison is the oldest. Costs one
 * request. Does nothing if no table is complete, if the source's time is not known, and during a feed gap: changes are
 * known to be missing then, which says nothing about the current webhook.
 *
 * @throws BasetideError any error of a request or a write
 */
export async function compareTable(comparison: SourceComparison): Promise<void> {
  const { feed, reader, cache, onDifference } = comparison;
  const nowMs = cache.sourceClock.now();
  const chosen = chooseTable(comparison);
  if (nowMs === undefined || !chosen || feed.gapSince || feed.isFailing) return;
  const { source, table } = chosen;
  const comparedUntil = feed.comparisons.untilMs.get(source.id);
  // Changes that were too recent to be seen by the previous comparison are compared again.
  const sinceMs = comparedUntil === undefined ? nowMs - RECENT_MS : comparedUntil - CLOCKS_OVERLAP_MS;
  reader.readVersions.renew();
  const readVersion = await reader.readVersions.current();
  const list = (connection: SourceConnection, signal: AbortSignal) =>
    connection.listPage(reader.sourceBaseId, source, { filter: comparison.modifiedSince(sinceMs) }, signal);
  const page = await metered(reader, "freshness")
    .send(list)
    .catch((caught: unknown) => {
      const error = asBasetideError(caught);
      if (isOfTable(error)) cache.failing.failed(source, error);
      throw error;
    });
  const differing = await findDiffering(comparison, table, page);
  feed.comparisons.compared(source.id, nowMs);
  if (differing.length === 0) return feed.recordInSync();
  const { lost } = await applyRecords(comparison, table, { page, readVersion }, differing);
  // They count as seen by a running sweep, so that it neither deletes nor forgets them.
  for (const index of differing) table.fingerprints.see(page.id(index), 0n);
  const ids = differing.map((index) => page.id(index)).filter((id) => !lost.includes(id));
  onDifference(source.id, ids);
  feed.notify();
}

function chooseTable({
  schemaTracker,
  cache,
  feed,
}: SourceComparison): { source: SourceTable; table: TableCache } | undefined {
  const whole = schemaTracker.tables.filter(({ id }) => {
    const { live, rebuild } = schemaTracker.table(id);
    return live && !rebuild && !cache.failing.has(id);
  });
  const id = feed.comparisons.next(whole.map((table) => table.id));
  const source = whole.find((table) => table.id === id);
  return source && { source, table: tableCache(cache, schemaTracker.table(source.id).live!) };
}

/** Returns the indices of records that SQL shows differently and that are not known to be waiting. */
async function findDiffering(
  comparison: SourceComparison,
  table: TableCache,
  page: RecordPage,
): Promise<number[]> {
  const { replica, isPending } = comparison;
  const { tableId } = table.live.spec;
  const unknown = Array.from({ length: page.size }, (_, index) => index).filter(
    (index) =>
      !isPending(tableId, page.id(index)) &&
      !table.fingerprints.isKnown(page.id(index), fingerprintIn(table, page, index)),
  );
  if (unknown.length === 0) return [];
  const rows = mapRecords(
    table.map,
    unknown.map((index) => page.record(index)),
    [],
  );
  const differing = new Set(await differingRows(replica, table.live, toldColumns(table), rows));
  return unknown.filter((index) => differing.has(page.id(index)) && !isPending(tableId, page.id(index)));
}

function toldColumns({ live }: TableCache): ColumnSpec[] {
  return live.spec.columns.filter(({ type }) => traitsOf(type).reported !== false);
}
