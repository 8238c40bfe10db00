/** What goes on beside live rounds: the reconciling sweep and what it says of them, rebuilds, and upkeep. */

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
/** A base at rest logs in for it only after so long. */
const LONGEST_UNTRIMMED_MS = 3600_000;
/** While it is not time yet, what the pace is by then is looked at this often. */
const TICK_MS = 1000;

/** A pass that begins after changes went missing from the feed finds them: one is begun at once. */
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
      // One that is open still wants another pass.
      cache.gapSeen = null;
      live.hurryForGap();
    },
  };
}

/** A sweep found these rows to be other than the source's records, of which the feed may yet tell. */
export function sweepsChanges(
  { feed, missedChanges, dirty }: Live,
  tableId: string,
  recordIds: string[],
): void {
  // What happened before the gap is known to be missing.
  if (feed.gapSince) return;
  missedChanges.found(
    tableId,
    recordIds.filter((id) => !dirty.has(tableId, id)),
    performance.now(),
  );
}

/** A rebuild is a sync of its own. */
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
 * The recent-writes log is read before it is trimmed: sweeps compare what others wrote. It waits for a connection that there
 * is anyway: what clients write of a live base is told by the feed, and makes one.
 */
export async function keepLogShort(live: Live): Promise<void> {
  const { input, schemaTracker, stop } = live;
  const { replica, cache } = input;
  for (let triedAt = Number.NEGATIVE_INFINITY; ; ) {
    await wait(TICK_MS, stop);
    const now = performance.now();
    // Also by the lease before.
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
      // What a write holds is read the next time.
      if (!isBasetideError(error, "replica_busy")) throw error;
    }
  }
}

/** Compares what SQL shows with the source, now and then. */
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
      // One that the lease's end breaks off is made by the next lease at once: a lease is as long as they are apart.
      if (isWholeBases(error)) throw error;
      input.reader.log.debug({ error }, "not compared with the source");
    }
    cache.comparedAt = startedAt;
  }
}
