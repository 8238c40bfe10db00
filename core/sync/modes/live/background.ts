/**
 * The background work of live mode: the scan and its effect on feed gaps and missed changes, rebuilds, trimming of the
 * recent-writes log, and comparisons.
 */

import { asBasetideError, isBasetideError } from "../../../errors";
import type { Logger } from "../../../log";
import { loggedTables } from "../../../replica";
import { expectLogged, newReport, reportIssues, tableCounts } from "../../engine";
import type { RunReport } from "../../host";
import { type Cadence, isWholeBases, UNPROMPTED_MS, type WorkKind } from "../../pacing";
import { type BaseCache, isOfTable, type LiveCache, requestSchemaCheck, tableCache } from "../../state";
import { type RebuildWatch, readSince, type ScanWatch, type SyncSession } from "../shared";
import type { LiveBatches } from "./batches";
import type { Feed } from "./feed-types";

/** How often the recent-writes log is trimmed. A base at rest logs in for it only after UNPROMPTED_MS. */
export const TRIM_INTERVAL_MS = 30_000;

interface Scanning {
  cache: Pick<LiveCache, "gapSeen">;
  scans: BaseCache;
  feed: Pick<Feed, "gapSince" | "isFailing" | "closeFeedGap">;
  batches: Pick<LiveBatches, "unchanged">;
  cadence: () => Cadence;
}

/**
 * Starts a scan and a schema check at once when a feed gap is new: those that begin after the gap find the missing
 * changes.
 */
export function scanWatch({ cache, scans, feed, batches, cadence }: Scanning): ScanWatch {
  return {
    everyMs: () => cadence().sweepEveryMs,
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
      const begunAt = scans.scanStartedAt!;
      if (feed.gapSince && !scans.schemaCheckRequestedAt) {
        await feed.closeFeedGap(begunAt);
        if (!feed.gapSince) batches.unchanged(begunAt);
      } else if (feed.isFailing) batches.unchanged(begunAt);
      // A gap that is still open needs another scan.
      cache.gapSeen = null;
    },
  };
}

/** A sweep found differences between these rows and the source's records, which the feed may still report. */
export function recordFound(
  feed: Pick<Feed, "gapSince" | "isFailing">,
  { missedChanges, dirty }: Pick<LiveCache, "missedChanges" | "dirty">,
  tableId: string,
  recordIds: string[],
): void {
  // Changes from before the gap are known to be missing, and those that cannot be read now may be reported later.
  if (feed.gapSince || feed.isFailing) return;
  missedChanges.found(
    tableId,
    recordIds.filter((id) => !dirty.has(tableId, id)),
    performance.now(),
  );
}

/** Reports a rebuild as a sync of its own. */
export function rebuildWatch(
  { input, schemaTracker, stop }: Pick<SyncSession, "input" | "schemaTracker" | "stop">,
  batches: Pick<LiveBatches, "failed">,
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
      };
    },
    onFailure(tableId, error) {
      // The schema check reports refusals.
      const isRefused = input.cache.refusals.has(tableId);
      if (!stop.aborted && !isRefused) void batches.failed(error).catch(() => {});
    },
  };
}

/**
 * Reads the recent-writes log before it is trimmed, because sweeps compare rows that other processes wrote. Waits
 * until a connection is open anyway: the feed reports clients' writes to a live base, which opens one.
 */
export function trimming(session: Pick<SyncSession, "input" | "schemaTracker" | "reading">): WorkKind {
  const { input, schemaTracker } = session;
  const { replica, cache } = input;
  let triedAt = Number.NEGATIVE_INFINITY;
  async function run(): Promise<void> {
    triedAt = performance.now();
    try {
      for (const tableId of await loggedTables(replica)) {
        const { live: table } = schemaTracker.table(tableId);
        if (table) await expectLogged(replica, tableCache(cache, table));
      }
      await input.onRead(readSince(session, triedAt));
    } catch (error) {
      // A log that a write holds is read the next time.
      if (!isBasetideError(error, "replica_busy")) throw error;
    }
  }
  return {
    most: 1,
    items() {
      // Includes trims by the previous lease.
      const lastAt = Math.max(triedAt, cache.trimPoints.at(-1)?.at ?? Number.NEGATIVE_INFINITY);
      const everyMs = replica.isConnected() ? TRIM_INTERVAL_MS : UNPROMPTED_MS;
      return [{ id: "log", dueInMs: lastAt + everyMs - performance.now(), run }];
    },
  };
}

interface Comparing {
  compare: (() => Promise<unknown>) | undefined;
  cache: Pick<LiveCache, "comparedAt">;
  cadence: () => Cadence;
  log: Logger;
}

/** The comparison of SQL with the source. */
export function comparing({ compare, cache, cadence, log }: Comparing): WorkKind {
  async function run(): Promise<void> {
    const startedAt = performance.now();
    try {
      await compare?.();
    } catch (caught) {
      const error = asBasetideError(caught);
      // The next lease repeats a comparison at once that the end of this lease interrupted: a lease is as long as
      // their interval.
      if (!isOfTable(error) && isWholeBases(error)) throw error;
      log.debug({ error }, "comparison with Airtable failed");
    }
    cache.comparedAt = startedAt;
  }
  return {
    most: 1,
    items: () =>
      compare
        ? [{ id: "compare", dueInMs: cache.comparedAt + cadence().freshnessMs - performance.now(), run }]
        : [],
  };
}
