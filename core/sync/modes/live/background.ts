/**
 * The background work of live mode: the scan and its effect on feed gaps and missed changes, rebuilds, trimming of the
 * recent-writes log, and comparisons.
 */

import { wait } from "../../../async";
import type { RunReport } from "../../../control/bases";
import { asBasetideError, isBasetideError } from "../../../errors";
import { loggedTables } from "../../../replica";
import { expectLogged, isWholeBases, newReport, reportIssues, tableCounts } from "../../engine";
import { tableCache } from "../../state";
import type { RebuildWatch } from "../shared";
import { readSince, type ScanWatch, sweptAgoMs } from "../shared";
import type { Live } from "./live";

const TRIM_INTERVAL_MS = 30_000;
/** An idle base logs in for it only after this time. */
const LONGEST_UNTRIMMED_MS = 3600_000;
/** While an action is not due yet, its interval is checked this often. */
const TICK_MS = 1000;

/** Starts a scan at once when a feed gap is new: a scan that begins after the gap finds the missing changes. */
export function scanWatch(live: Live): ScanWatch {
  const { input, cache, feed, batches } = live;
  return {
    everyMs: () => live.cadence().sweepEveryMs,
    lastAgoMs: () => sweptAgoMs(input.base),
    isWanted() {
      const { gapSince } = feed;
      const isNew = gapSince !== null && gapSince.getTime() !== cache.gapSeen?.getTime();
      if (isNew) cache.gapSeen = gapSince;
      return isNew;
    },
    async onEnd() {
      if (feed.gapSince) {
        const begunAt = input.cache.scanStartedAt!;
        await feed.closeFeedGap(begunAt);
        if (!feed.gapSince) batches.unchanged(begunAt);
      }
      // A gap that is still open needs another scan.
      cache.gapSeen = null;
    },
  };
}

/** A sweep found differences between these rows and the source's records, which the feed may still report. */
export function sweepsChanges(
  { feed, missedChanges, dirty }: Live,
  tableId: string,
  recordIds: string[],
): void {
  // Changes from before the gap are known to be missing.
  if (feed.gapSince) return;
  missedChanges.found(
    tableId,
    recordIds.filter((id) => !dirty.has(tableId, id)),
    performance.now(),
  );
}

/** Reports a rebuild as a sync of its own. */
export function rebuildWatch({ input, schemaTracker, batches, wake, stop }: Live): RebuildWatch {
  return {
    onBegin(tableId) {
      const startedAt = new Date();
      return async ({ seen, inserted }) => {
        const report: RunReport = {
          ...newReport(),
          kind: "rebuild",
          startedAt,
          completedAt: new Date(),
          seen,
          inserted,
          tables: tableCounts(schemaTracker.tables, input.cache, input.base),
        };
        await reportIssues(input.replica, report);
        await input.onRun(report);
        input.reader.log.info({ tableId, seen }, "table rebuilt");
        wake.notify();
      };
    },
    onFailure(_tableId, error) {
      if (!stop.aborted) void batches.failed(error).catch(() => {});
    },
  };
}

/**
 * Reads the recent-writes log before it is trimmed, because sweeps compare rows that other processes wrote. Waits
 * until a connection is open anyway: the feed reports clients' writes to a live base, which opens one.
 */
export async function keepLogShort(live: Live): Promise<void> {
  const { input, schemaTracker, stop } = live;
  const { replica, cache } = input;
  for (let triedAt = Number.NEGATIVE_INFINITY; ; ) {
    await wait(TICK_MS, stop);
    const now = performance.now();
    // Includes trims by the previous lease.
    const lastAt = Math.max(triedAt, cache.trimPoints.at(-1)?.at ?? Number.NEGATIVE_INFINITY);
    if (now - lastAt < (replica.isConnected() ? TRIM_INTERVAL_MS : LONGEST_UNTRIMMED_MS)) continue;
    triedAt = now;
    try {
      for (const tableId of await loggedTables(replica)) {
        const { live: table } = schemaTracker.table(tableId);
        if (table) await expectLogged(replica, tableCache(cache, table));
      }
      await input.onRead(readSince(live, now));
    } catch (error) {
      // A log that a write holds is read the next time.
      if (!isBasetideError(error, "replica_busy")) throw error;
    }
  }
}

/** Compares SQL with the source at the interval for comparisons. */
export async function keepComparing(live: Live): Promise<void> {
  const { input, cache, stop } = live;
  if (!input.compare) return;
  for (;;) {
    await wait(TICK_MS, stop);
    if (performance.now() - cache.comparedAt < live.cadence().freshnessMs) continue;
    const startedAt = performance.now();
    try {
      await input.compare(live);
    } catch (caught) {
      const error = asBasetideError(caught);
      // The next lease repeats a comparison at once that the end of this lease interrupted: a lease is as long as
      // their interval.
      if (isWholeBases(error)) throw error;
      input.reader.log.debug({ error }, "not compared with the source");
    }
    cache.comparedAt = startedAt;
  }
}
