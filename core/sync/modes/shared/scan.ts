/**
 * Sweeps all tables one by one in the background of rapid and live mode, scan after scan.
 *
 * One table at a time, so that each is read once per scan. A scan may take longer than a lease, which then ends
 * between two tables; the position of the scan is cached from lease to lease.
 */

import { linkedAbort, wait } from "../../../async";
import { agoMs } from "../../../postgres";
import {
  askFailing,
  newReport,
  readerOfTable,
  reportIssues,
  type Sweep,
  sweepTable,
  type TableOutcome,
  tableCounts,
  tableFailed,
} from "../../engine";
import type { RunReport, SyncedBase } from "../../host";
import { type DueItem, periodic, TICK_MS, type WorkKind } from "../../pacing";
import { type SweepScan, tableCache } from "../../state";
import { type SyncSession, whileReading } from "./sync-session";

export interface ScanWatch {
  /** Returns the interval between the starts of two scans, ms. */
  everyMs: () => number;
  /**
   * Returns whether a scan over all tables must start now, even if none is due or one is running. Called often;
   * returns true once.
   */
  isWanted?: () => boolean;
  onEnd?: (scan: SweepScan) => Promise<void> | void;
}

/** The scan that is due or running: one step at a time, each of which sweeps one table. */
export function scanning(session: SyncSession, watch: ScanWatch): WorkKind {
  const { cache } = session.input;
  let isBusy = false;
  const step = (run: () => Promise<unknown>): DueItem[] => {
    const busy = async () => {
      isBusy = true;
      await run().finally(() => {
        isBusy = false;
      });
    };
    return [{ id: "scan", run: busy }];
  };
  return {
    most: 1,
    items() {
      if (isBusy) return [];
      const isRunning = cache.scan !== null && !cache.scan.isOver;
      if (watch.isWanted?.() || (!isRunning && dueInMs(session, watch) <= 0)) beginScan(session);
      const { scan } = cache;
      const next =
        scan?.remaining.find((id) => !cache.failing.has(id)) ??
        scan?.remaining.find((id) => isReadableAgain(session, id));
      if (scan && next !== undefined) return step(() => sweepNext(session, scan, next));
      if (scan && (!scan.isOver || scan.remaining.length === 0))
        return step(() => endScan(session, scan, watch));
      return [{ id: "scan", dueInMs: dueInMs(session, watch), run: async () => {} }];
    },
  };
}

/** What is left are tables that cannot be read: they are swept once they can be, and then the scan has read everything. */
async function endScan(session: SyncSession, scan: SweepScan, watch: ScanWatch): Promise<void> {
  const { cache } = session.input;
  const { length } = scan.remaining;
  if (!scan.isOver && length < session.schemaTracker.tables.length) await reportScan(session, scan);
  scan.isOver = true;
  if (length === 0) cache.scan = null;
  await watch.onEnd?.(scan);
}

function isReadableAgain({ input, schemaTracker }: SyncSession, tableId: string): boolean {
  const { source, live, rebuild } = schemaTracker.table(tableId);
  return !source || (input.cache.failing.isReadable(tableId) && live !== undefined && !rebuild);
}

function beginScan({ input, schemaTracker }: SyncSession): void {
  const { cache } = input;
  const counts = { seen: 0, inserted: 0, updated: 0, deleted: 0, requests: 0, waitMs: 0 };
  const before = cache.scan;
  cache.scan = {
    ...(before && !before.isOver ? { ...before, seen: 0 } : counts),
    startedAt: new Date(),
    remaining: schemaTracker.tables.map(({ id }) => id),
    isOver: false,
  };
  cache.scanStartedAt = performance.now();
}

/** Returns how long ago the base's last scan began; Infinity: never. */
export function sweptAgoMs(base: Pick<SyncedBase, "sweep" | "clockAheadMs">): number {
  return base.sweep ? agoMs(base, base.sweep.startedAt) : Infinity;
}

function dueInMs({ input }: SyncSession, { everyMs }: ScanWatch): number {
  const { scanStartedAt } = input.cache;
  const begunMs = scanStartedAt === null ? sweptAgoMs(input.base) : performance.now() - scanStartedAt;
  return everyMs() - begunMs;
}

/** Sweeps a table of the scan, or postpones it. @throws the error if it failed, and not because of the table */
async function sweepNext(session: SyncSession, scan: SweepScan, tableId: string): Promise<void> {
  const { input, schemaTracker, stop } = session;
  const { cache, reader } = input;
  const shape = schemaTracker.table(tableId);
  const { source, live, rebuild } = shape;
  scan.remaining.splice(scan.remaining.indexOf(tableId), 1);
  if (!source) return;
  scan.remaining.push(tableId);
  try {
    if (live && !rebuild) await sweepForScan(session, scan, tableId);
    else await wait(TICK_MS, stop);
  } catch (caught) {
    const error = await tableFailed({ schemaTracker, cache, log: reader.log }, tableId, shape, caught);
    if (!error || cache.failing.has(tableId)) return;
    reader.log.warn({ error, tableId }, "sweeping a table failed");
    await input.onRun({ ...newReport(), isBackground: true, startedAt: scan.startedAt, error });
    throw error;
  }
}

/**
 * Asks again for tables that could not be read; see `askFailing`.
 *
 * @param isWrittenTo returns whether other work will show whether rows of the table can be written
 */
export function asking(
  { input, schemaTracker, background }: SyncSession,
  isWrittenTo: (tableId: string) => boolean,
): WorkKind {
  const { cache } = input;
  async function run(): Promise<void> {
    cache.failing.keepOnly(schemaTracker.tables);
    void askFailing(cache.failing, background.reader, schemaTracker.tables);
    for (const id of cache.failing.ids) {
      // A scan that could not read it must do so now; otherwise there is nothing to read but what is named.
      if (!cache.failing.isReadable(id) || (cache.scan?.isOver && cache.scan.remaining.includes(id)))
        continue;
      if (cache.failing.isOfRows(id) && isWrittenTo(id)) continue;
      const table = { id, name: schemaTracker.table(id).source?.name ?? id };
      if (await cache.failing.attempt(table, () => schemaTracker.ownTable(id))) cache.failing.read(id);
    }
  }
  return periodic(run);
}

/** Sweeps one table of the scan. */
async function sweepForScan(session: SyncSession, scan: SweepScan, tableId: string): Promise<void> {
  const { background } = session;
  const before = { ...background.reader.counts };
  const outcome = await sweepExclusively(session, background, tableId);
  if (!outcome) return;
  scan.requests += background.reader.counts.requests - before.requests;
  scan.waitMs += background.reader.counts.waitMs - before.waitMs;
  scan.inserted += outcome.inserted;
  scan.updated += outcome.updated;
  scan.deleted += outcome.deleted;
  scan.seen += outcome.seen;
  scan.remaining = scan.remaining.filter((id) => id !== tableId);
}

/**
 * Sweeps a live table exclusively: two concurrent sweeps would each treat the records that only the other has seen as
 * gone. A sweep for the scan gives way to an urgent one (`isUrgent`), which then counts for the scan.
 *
 * @returns undefined when it gave way
 */
export async function sweepExclusively(
  session: SyncSession,
  sweep: Sweep,
  tableId: string,
  isUrgent = false,
): Promise<TableOutcome | undefined> {
  const { input, schemaTracker, sweeping } = session;
  for (let other = sweeping.get(tableId); other; other = sweeping.get(tableId)) {
    if (isUrgent) other.giveWay();
    await other.over;
    if (!isUrgent) return undefined;
  }
  using abort = linkedAbort(sweep.reader.stop);
  const { promise, resolve } = Promise.withResolvers<void>();
  let hasGivenWay = false;
  const giveWay = () => {
    if (isUrgent) return;
    hasGivenWay = true;
    abort.abort();
  };
  sweeping.set(tableId, { giveWay, over: promise });
  const { failing } = input.cache;
  const begunFor = input.cache.scan;
  try {
    const { source, live } = schemaTracker.table(tableId);
    if (!source || !live) return undefined;
    sweep.reader.readVersions.renew();
    using watched = readerOfTable(sweep.reader, source, failing);
    const one = { ...sweep, reader: { ...watched.reader, stop: abort.signal } };
    const outcome = await whileReading(session, tableId, () =>
      sweepTable(one, source, tableCache(input.cache, live)),
    );
    failing.read(tableId);
    const { scan } = input.cache;
    if (isUrgent && scan && scan === begunFor) {
      scan.remaining = scan.remaining.filter((id) => id !== tableId);
      scan.seen += outcome.seen;
    }
    return outcome;
  } catch (error) {
    if (hasGivenWay && !sweep.reader.stop.aborted) return undefined;
    throw error;
  } finally {
    sweeping.delete(tableId);
    resolve();
  }
}

async function reportScan({ input, schemaTracker }: SyncSession, scan: SweepScan): Promise<void> {
  const { remaining: _, isOver: __, ...counts } = scan;
  const report: RunReport = {
    ...newReport(),
    ...counts,
    waitMs: Math.round(scan.waitMs),
    isBackground: true,
    completedAt: new Date(),
    tables: tableCounts(schemaTracker.tables, input.cache, input.base),
    ...(scan.remaining.length > 0 && { failing: input.cache.failing.list() }),
  };
  await reportIssues(input.replica, report);
  await input.onRun(report);
}
