/**
 * The background work of live mode: the scan and its effect on feed gaps and missed changes, rebuilds, trimming of the
 * recent-writes log, and comparisons.
 */

import { type Notifier, waitCoarsely } from "../../../async";
import { asBasetideError, isBasetideError } from "../../../errors";
import type { Logger } from "../../../log";
import { loggedTables } from "../../../replica";
import { expectLogged, isWholeBases, newReport, reportIssues, tableCounts } from "../../engine";
import type { RunReport, SyncedBase } from "../../host";
import type { Cadence } from "../../pacing";
import { type BaseCache, isOfTable, type LiveCache, requestSchemaCheck, tableCache } from "../../state";
import { type RebuildWatch, readSince, type ScanWatch, type SyncSession, sweptAgoMs } from "../shared";
import type { LiveBatches } from "./batches";
import type { Feed } from "./feed-types";

const TRIM_INTERVAL_MS = 30_000;
/** A base at rest logs in for it only after this time. Each lease does it, too. */
export const LONGEST_UNTRIMMED_MS = 6 * 3600_000;
/** While an action is not due yet, its interval is checked this often. */
const TICK_MS = 1000;

interface Scanning {
  base: SyncedBase;
  cache: Pick<LiveCache, "gapSeen">;
  scans: BaseCache;
  feed: Pick<Feed, "gapSince" | "closeFeedGap">;
  batches: Pick<LiveBatches, "unchanged">;
  cadence: () => Cadence;
}

/**
 * Starts a scan and a schema check at once when a feed gap is new: those that begin after the gap find the missing
 * changes.
 */
export function scanWatch({ base, cache, scans, feed, batches, cadence }: Scanning): ScanWatch {
  return {
    everyMs: () => cadence().sweepEveryMs,
    lastAgoMs: () => sweptAgoMs(base),
    isWanted() {
      const { gapSince } = feed;
      const isNew = gapSince !== null && gapSince.getTime() !== cache.gapSeen?.getTime();
      if (isNew) {
        cache.gapSeen = gapSince;
        requestSchemaCheck(scans, gapSince);
      }
      return isNew;
    },
    async onEnd({ remaining }) {
      // A feed gap stays until the tables that could not be read have been swept, too.
      if (remaining.length > 0) return;
      if (feed.gapSince && !scans.schemaCheckRequestedAt) {
        const begunAt = scans.scanStartedAt!;
        await feed.closeFeedGap(begunAt);
        if (!feed.gapSince) batches.unchanged(begunAt);
      }
      // A gap that is still open needs another scan.
      cache.gapSeen = null;
    },
  };
}

/** A sweep found differences between these rows and the source's records, which the feed may still report. */
export function recordFound(
  feed: Pick<Feed, "gapSince">,
  { missedChanges, dirty }: Pick<LiveCache, "missedChanges" | "dirty">,
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

/** Reports a rebuild as a sync of its own, and wakes the loop that works on tables when one is live. */
export function rebuildWatch(
  { input, schemaTracker, stop }: Pick<SyncSession, "input" | "schemaTracker" | "stop">,
  batches: Pick<LiveBatches, "failed">,
  work: Notifier,
): RebuildWatch {
  return {
    onBegin(tableId) {
      const startedAt = new Date();
      return async ({ seen, inserted }) => {
        const { refusal } = schemaTracker;
        const report: RunReport = {
          ...newReport(),
          kind: "rebuild",
          startedAt,
          // A completed one would clear the base's error, though another table is still refused.
          ...(refusal ? { error: refusal } : { completedAt: new Date() }),
          seen,
          inserted,
          tables: tableCounts(schemaTracker.tables, input.cache, input.base),
        };
        await reportIssues(input.replica, report);
        await input.onRun(report);
        input.reader.log.info({ tableId, seen }, "table rebuilt");
        work.notify();
      };
    },
    onFailure(tableId, error) {
      // The loop that checks the schema reports refusals.
      const isRefused = input.cache.refusals.has(tableId);
      if (!stop.aborted && !isRefused) void batches.failed(error).catch(() => {});
      // A table whose rebuild is refused is worked on as it is.
      work.notify();
    },
  };
}

/**
 * Reads the recent-writes log before it is trimmed, because sweeps compare rows that other processes wrote. Waits
 * until a connection is open anyway: the feed reports clients' writes to a live base, which opens one.
 */
export async function keepLogShort(
  session: Pick<SyncSession, "input" | "schemaTracker" | "reading" | "stop">,
): Promise<void> {
  const { input, schemaTracker, stop } = session;
  const { replica, cache } = input;
  for (let triedAt = Number.NEGATIVE_INFINITY; ; ) {
    await waitCoarsely(TICK_MS, stop);
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
      await input.onRead(readSince(session, now));
    } catch (error) {
      // A log that a write holds is read the next time.
      if (!isBasetideError(error, "replica_busy")) throw error;
    }
  }
}

interface Comparing {
  compare: (() => Promise<unknown>) | undefined;
  cache: Pick<LiveCache, "comparedAt">;
  cadence: () => Cadence;
  log: Logger;
  stop: AbortSignal;
}

/** Compares SQL with the source at the interval for comparisons. */
export async function keepComparing({ compare, cache, cadence, log, stop }: Comparing): Promise<void> {
  if (!compare) return;
  for (;;) {
    await waitCoarsely(TICK_MS, stop);
    if (performance.now() - cache.comparedAt < cadence().freshnessMs) continue;
    const startedAt = performance.now();
    try {
      await compare();
    } catch (caught) {
      const error = asBasetideError(caught);
      // The next lease repeats a comparison at once that the end of this lease interrupted: a lease is as long as
      // their interval.
      if (!isOfTable(error) && isWholeBases(error)) throw error;
      log.debug({ error }, "comparison with Airtable failed");
    }
    cache.comparedAt = startedAt;
  }
}
