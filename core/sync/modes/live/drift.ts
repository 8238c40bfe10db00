/**
 * Freshness, measured: a few records that the source says were modified lately are compared with what SQL shows.
 *
 * A webhook may look well and tell of nothing. What it keeps silent about is found here, with one call of the source.
 *
 * M1. SQL is called stale only for a record whose own cells differ and that nobody has applied, nor knows to have
 *     changed, since the source showed it so some time ago. That is judged by the replica itself: an image that was
 *     asked for then still wins.
 */

import { wait } from "../../../async";
import { type ColumnSpec, differingRows, mapRecords, traitsOf } from "../../../replica";
import type { RecordPage, SourceConnection, SourceTable } from "../../../source";
import { applyRecords, ask, type Sweep } from "../../engine";
import { fingerprintIn, type TableCache, tableCache } from "../../state";
import type { LiveFeed } from "./feed";

/** The feed may take so long to tell of a change, ms. The recent-writes log is kept for longer, or nothing would be judged. */
const GRACE_MS = 15_000;
/** A table is compared from so long before the last comparison on: what was too fresh to be judged then. */
const OVERLAP_MS = 60_000;
/** How far the first comparison of a table goes back. */
const FIRST_MS = 15 * 60_000;

/** Our clock and what is known of the source's may be so far apart. */
const CLOCK_ERROR_MS = 5000;
/** A record may have been named so long before it was compared, ms. */
const TOLD_BEFORE_MS = 5000;

export interface DriftCheck extends Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache"> {
  feed: LiveFeed;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /** Is the record known to have changed, and not in the replica yet? True until its image has been applied. */
  isPending: (tableId: string, recordId: string) => boolean;
  /**
   * Has the feed named the record since then (performance.now())? A feed that says nothing of what differed is silent,
   * though a sweep may have brought it meanwhile. Unless given, only what nobody brought tells.
   */
  isTold?: (tableId: string, recordId: string, sinceMs: number) => boolean;
  /** Told of records that were stale, once they are right. */
  onDrift?: (count: number) => void;
  /** How long the feed may take to tell of a change, ms; GRACE_MS unless given. */
  graceMs?: number;
}

export interface DriftResult {
  /** Records that the source gave. */
  records: number;
  /** Those that SQL showed otherwise; they are right now. */
  stale: number;
}

/**
 * Compares one table: the one that the feed has lately told of, or else that was compared longest ago.
 *
 * Costs one request; where something differs it waits to see whether the feed tells of it.
 *
 * @returns null where nothing can be compared now: no table is whole, or the source's time is not known
 * @throws BasetideError as any request and any write may
 */
export async function detectDrift(comparing: DriftCheck): Promise<DriftResult | null> {
  const { feed, reader, cache } = comparing;
  const nowMs = cache.sourceClock.now();
  const chosen = chooseTable(comparing);
  if (nowMs === undefined || !chosen) return null;
  const { source, table } = chosen;
  const sinceMs = sinceOf(feed, source.id, nowMs);
  const askedAt = performance.now();
  reader.readVersions.renew();
  const readVersion = await reader.readVersions.current();
  const list = (signal: AbortSignal, connection: SourceConnection) =>
    connection.listPage(reader.sourceBaseId, source, { filter: comparing.modifiedSince(sinceMs) }, signal);
  const page = await ask(reader, list, "freshness");
  const suspects = await findSuspects(comparing, table, page);
  let [stale, untold] = [0, 0];
  if (suspects.length > 0) {
    // It may be that nobody has asked: what the feed tells now is no lie of it.
    feed.notify();
    await wait(comparing.graceMs ?? GRACE_MS, reader.stop);
    untold = untoldOf(comparing, source.id, page, suspects, askedAt - TOLD_BEFORE_MS);
    stale = await judge(comparing, source, { page, readVersion }, suspects);
  }
  feed.comparisons.compared(source.id, nowMs);
  if (stale === 0 && untold === 0) {
    await feed.recordInSync();
  } else {
    reader.log.warn(
      { tableId: source.id, records: stale, untold },
      "SQL lags behind the source, of which the feed told nothing",
    );
    if (stale > 0) comparing.onDrift?.(stale);
    await feed.recordDrift();
  }
  return { records: page.size, stale };
}

/** What was missing from the feed before is left to a sweep, and says nothing of the webhook that there is now. */
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
    return live && !rebuild;
  });
  const id = feed.comparisons.next(whole.map((table) => table.id));
  const source = whole.find((table) => table.id === id);
  return source && { source, table: tableCache(cache, schemaTracker.table(source.id).live!) };
}

/** Indices of the records that SQL shows otherwise and that are not known to wait. */
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

/** How many of the suspects differed by something that the feed does not tell of, and that a sweep may have brought. */
function untoldOf(
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

/** Applies what nobody else has brought meanwhile (M1). @returns how many records that were */
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
  // Seen by whatever sweep is under way: neither gone nor to be forgotten.
  for (const index of silent) table.fingerprints.see(asked.page.id(index), 0n);
  return inserted + updated;
}
