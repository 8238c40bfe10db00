/**
 * Detects drift: compares a few records that the source reports as recently modified with the rows in SQL.
 *
 * A webhook may look healthy and report nothing. One call to the source finds the changes that it omits.
 *
 * M1. A row counts as drifted only if its own cells differ and, since the source showed the record some time ago, no
 * process has applied it or knows that it changed. The replica itself decides that: an image that was requested at
 * that time must still win.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import { type ColumnSpec, differingRows, mapRecords, traitsOf } from "../../../replica";
import type { RecordPage, SourceConnection, SourceTable } from "../../../source";
import { applyRecords, metered, type Sweep } from "../../engine";
import { fingerprintIn, isOfTable, type TableCache, tableCache } from "../../state";
import type { LiveFeed } from "./feed";

/**
 * The feed may take this long to report a change, ms. The recent-writes log is kept for longer; otherwise nothing
 * could be judged.
 */
const GRACE_MS = 15_000;
/**
 * A table is compared from this long before the previous comparison: changes that were too recent to be judged then.
 */
const OVERLAP_MS = 60_000;
/** How far the first comparison of a table goes back. */
const FIRST_MS = 15 * 60_000;

/** Our clock and the estimate of the source's clock may differ by this much. */
const CLOCK_ERROR_MS = 5000;
/** A record may have been named this long before it was compared, ms. */
const TOLD_BEFORE_MS = 5000;

export interface DriftCheck extends Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache"> {
  feed: LiveFeed;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /**
   * Returns whether the record is known to have changed and is not in the replica yet. True until its image has been
   * applied.
   */
  isPending: (tableId: string, recordId: string) => boolean;
  /**
   * Returns whether the feed has named the record since then (performance.now()). If the feed did not report a
   * difference, it is unreliable even if a sweep has applied the change meanwhile. Without this function, only changes
   * count that no process has applied.
   */
  isTold?: (tableId: string, recordId: string, sinceMs: number) => boolean;
  /** Called with the number of drifted records, once they are correct. */
  onDrift?: (count: number) => void;
  /** How long the feed may take to report a change, ms; defaults to GRACE_MS. */
  graceMs?: number;
}

interface DriftResult {
  /** Records that the source returned. */
  records: number;
  /** Those that SQL showed differently; they are correct now. */
  stale: number;
}

/**
 * Compares one table: the one that the feed has reported most recently, or the one whose comparison is the oldest.
 *
 * Costs one request. If rows differ, waits for the feed to report them.
 *
 * @returns null if nothing can be compared now: no table is complete, or the source's time is not known
 * @throws BasetideError any error of a request or a write
 */
export async function detectDrift(comparing: DriftCheck): Promise<DriftResult | null> {
  const { feed, reader, cache } = comparing;
  const nowMs = cache.sourceClock.now();
  const chosen = chooseTable(comparing);
  if (nowMs === undefined || !chosen || feed.isFailing) return null;
  const { source, table } = chosen;
  const sinceMs = sinceOf(feed, source.id, nowMs);
  const askedAt = performance.now();
  reader.readVersions.renew();
  const readVersion = await reader.readVersions.current();
  const list = (connection: SourceConnection, signal: AbortSignal) =>
    connection.listPage(reader.sourceBaseId, source, { filter: comparing.modifiedSince(sinceMs) }, signal);
  const page = await metered(reader, "freshness")
    .send(list)
    .catch((caught: unknown) => {
      const error = asBasetideError(caught);
      if (isOfTable(error)) cache.failing.failed(source, error);
      throw error;
    });
  const suspects = await findSuspects(comparing, table, page);
  let [stale, unreported] = [0, 0];
  if (suspects.length > 0) {
    // The feed may not have been read yet: a change that it reports now is not drift.
    feed.notify();
    await wait(comparing.graceMs ?? GRACE_MS, reader.stop);
    if (feed.isFailing) return null;
    unreported = unreportedOf(comparing, source.id, page, suspects, askedAt - TOLD_BEFORE_MS);
    stale = await judge(comparing, source, { page, readVersion }, suspects);
  }
  feed.comparisons.compared(source.id, nowMs);
  if (stale === 0 && unreported === 0) {
    await feed.recordInSync();
  } else {
    reader.log.warn(
      { tableId: source.id, records: stale, unreported },
      "the replica differs from Airtable, and the feed did not report it",
    );
    if (stale > 0) comparing.onDrift?.(stale);
    await feed.recordDrift();
  }
  return { records: page.size, stale };
}

/**
 * Returns the start of the compared period. Changes that were missing from the feed earlier are left to a scan, and
 * say nothing about the current webhook.
 */
function sinceOf({ comparisons, gapAgoMs }: LiveFeed, tableId: string, nowMs: number): number {
  const comparedUntil = comparisons.untilMs.get(tableId);
  const sinceMs = comparedUntil === undefined ? nowMs - FIRST_MS : comparedUntil - OVERLAP_MS;
  return Math.max(sinceMs, nowMs - gapAgoMs + CLOCK_ERROR_MS);
}

function chooseTable({
  schemaTracker,
  cache,
  feed,
}: DriftCheck): { source: SourceTable; table: TableCache } | undefined {
  const whole = schemaTracker.tables.filter(({ id }) => {
    const { live, rebuild } = schemaTracker.table(id);
    return live && !rebuild && !cache.failing.has(id);
  });
  const id = feed.comparisons.next(whole.map((table) => table.id));
  const source = whole.find((table) => table.id === id);
  return source && { source, table: tableCache(cache, schemaTracker.table(source.id).live!) };
}

/** Returns the indices of records that SQL shows differently and that are not known to be waiting. */
async function findSuspects(comparing: DriftCheck, table: TableCache, page: RecordPage): Promise<number[]> {
  const { replica, isPending } = comparing;
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
  return unknown.filter((index) => differing.has(page.id(index)));
}

function toldColumns({ live }: TableCache): ColumnSpec[] {
  return live.spec.columns.filter(({ type }) => traitsOf(type).reported !== false);
}

/** Returns how many suspects differed by changes that the feed did not report, even if a sweep has applied them. */
function unreportedOf(
  { isTold, isPending }: DriftCheck,
  tableId: string,
  page: RecordPage,
  suspects: number[],
  sinceMs: number,
): number {
  if (!isTold) return 0;
  const ids = suspects.map((index) => page.id(index));
  return ids.filter((id) => !isPending(tableId, id) && !isTold(tableId, id, sinceMs)).length;
}

/** Applies records that no other process has applied meanwhile (M1). @returns their number */
async function judge(
  comparing: DriftCheck,
  source: SourceTable,
  asked: { page: RecordPage; readVersion: number },
  suspects: number[],
): Promise<number> {
  const { schemaTracker, cache, isPending } = comparing;
  const { live, rebuild } = schemaTracker.table(source.id);
  if (!live || rebuild) return 0;
  const table = tableCache(cache, live);
  const silent = suspects.filter((index) => !isPending(source.id, asked.page.id(index)));
  const { inserted, updated } = await applyRecords(comparing, table, asked, silent);
  // They count as seen by a running sweep, so that it neither deletes nor forgets them.
  for (const index of silent) table.fingerprints.see(asked.page.id(index), 0n);
  return inserted + updated;
}
