/**
 * Reads the feed on notifications or at the polling interval, and names the changes that it reports.
 *
 * L4. Everything that a feed batch names is in the dirty set before anything is awaited: the feed does not repeat it.
 */

import { wait } from "../../../async";
import { asBasetideError } from "../../../errors";
import type { ChangedTable, SourceChanges } from "../../../source";
import { isWholeBases } from "../../engine";
import { failurePauseMs } from "../../pacing";
import type { FeedBatch } from "./feed-types";
import type { Live } from "./live";

/** Weight of the latest read in the average cost of reads. */
const LATEST_PART = 0.2;

/** The longest delay of the feed in reporting a change, plus the time that taking a read version takes, ms. */
const LATE_MS = 20_000;

/** Reads the feed forever. */
export async function keepReading(live: Live): Promise<void> {
  const { feed, cache, stop } = live;
  const { bucket } = cache;
  for (let failures = 0; ; ) {
    const { pollMs, notificationGapMs } = live.cadence();
    // An earlier lease may have read it recently. After a failed read, the reason for that read still holds.
    const restMs = Math.max(0, cache.readAt + pollMs - performance.now());
    if (restMs > 0 && failures === 0) {
      live.dueAt = new Date(Date.now() + restMs);
      await live.note();
      if (await feed.wakeUp(restMs, stop)) {
        await wait(bucket.waitMs(performance.now(), notificationGapMs), stop);
        bucket.take(performance.now(), notificationGapMs);
      }
    }
    try {
      await readToEnd(live);
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      live.input.reader.log.debug({ error }, "feed not read");
      await live.batches.failed(error);
      await wait(failurePauseMs(++failures, error), stop);
    }
  }
}

async function readToEnd(live: Live): Promise<void> {
  const { feed, feedReader, missedChanges, cache } = live;
  const { counts } = feedReader;
  for (;;) {
    const asked = { at: performance.now(), date: new Date() };
    const batch = await feed.read(feedReader);
    name(live, batch, oldReadVersion(live, asked.at));
    live.batches.read(asked, isNews(batch.changes), !batch.mightHaveMore);
    live.settled();
    if (batch.mightHaveMore) continue;
    const callsMade = counts.requests - live.callsCounted;
    live.callsCounted = counts.requests;
    cache.batchCalls += (callsMade - cache.batchCalls) * LATEST_PART;
    cache.readAt = asked.at;
    const missed = missedChanges.readToEnd(asked.at);
    if (missed > 0) await live.countMissedChanges(missed);
    return;
  }
}

/**
 * Returns a read version for destroyed records (I1, I2). The feed may report a deletion late, when the record has
 * already been restored and written by a client that knows so: any image that was logged for it since the read version
 * wins, and the record is read again. Undefined if no read version is old enough.
 */
function oldReadVersion({ input }: Live, askedAt: number): number | undefined {
  const { trimPoints, trimmedTo } = input.cache;
  const old = trimPoints.findLast(({ at }) => at < askedAt - LATE_MS) ?? trimmedTo;
  return old?.readVersion;
}

/** Names the changes of the batch; nothing is awaited (L4). */
function name(live: Live, batch: FeedBatch, readVersion: number | undefined): void {
  const { dirty, missedChanges } = live;
  const { from: cursor, changes, mightHaveMore } = batch;
  const now = performance.now();
  dirty.beginBatch(cursor);
  for (const [tableId, table] of changes.tables) {
    const { created, changed, destroyed, fieldsChanged } = table;
    for (const ids of [created, changed.keys(), destroyed]) missedChanges.named(tableId, ids, now);
    for (const id of created) dirty.add(tableId, id, { cursor, why: "direct", fields: null, isNew: true });
    for (const [id, fields] of changed)
      dirty.add(tableId, id, {
        cursor,
        why: "direct",
        fields: fields.length > 0 ? new Set(fields) : null,
      });
    for (const id of destroyed) dirty.add(tableId, id, { cursor, why: "destroyed", fields: null });
    const shape = live.schemaTracker.table(tableId);
    if (fieldsChanged || !shape.source || !shape.live) dirty.suspect(tableId, cursor);
    nameRetyped(live, tableId, table, cursor);
  }
  const { tablesCreated, tablesDestroyed, tablesChanged } = changes;
  for (const tableId of [...tablesCreated, ...tablesDestroyed, ...tablesChanged])
    dirty.suspect(tableId, cursor);
  dirty.endBatch(batch.cursor);
  if (!mightHaveMore && readVersion !== undefined) dirty.endFeed(readVersion);
  if (!isNews(changes)) return;
  live.cache.changedAt = new Date();
  live.wake.notify();
  if (dirty.suspected().length > 0) live.schemaNotifier.notify();
}

/**
 * Requests a sweep for a field that had another type, if only for a moment: it may have other cells now, which need
 * not be reported. Includes the tables whose cells depend on it. A schema check does not notice this when the type is
 * the original one again.
 */
function nameRetyped(
  { schemaTracker, dirty, dependants }: Live,
  tableId: string,
  { typesTold }: ChangedTable,
  cursor: number,
): void {
  const columns = schemaTracker.table(tableId).live?.spec.columns ?? [];
  for (const { fieldId, sourceType } of columns) {
    if (!typesTold.get(fieldId)?.some((type) => type !== sourceType)) continue;
    const reached = dependants.graph?.hops(tableId, fieldId) ?? [];
    for (const id of new Set([tableId, ...reached.map((hop) => hop.tableId)])) dirty.addTable(id, cursor);
  }
}

function isNews({ tables, tablesCreated, tablesDestroyed, tablesChanged }: SourceChanges): boolean {
  return tables.size + tablesCreated.length + tablesDestroyed.length + tablesChanged.length > 0;
}
