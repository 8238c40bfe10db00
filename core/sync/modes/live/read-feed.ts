/**
 * Reads the feed on notifications or at the polling interval, and names the changes that it reports.
 *
 * L4. Everything that a feed batch names is in the dirty set before anything is awaited: the feed does not repeat it.
 */

import { wait } from "../../../async";
import { asBasetideError, type BasetideError } from "../../../errors";
import type { ChangedTable, SourceChanges } from "../../../source";
import { MINUTE_MS } from "../../../time-units";
import type { Reader, SchemaTracker } from "../../engine";
import { type Cadence, isWholeBases, itemPauseMs, SHORTEST_MS } from "../../pacing";
import {
  type BaseCache,
  FEED_LATE_MS,
  type FoundBy,
  isOfTable,
  isRefusedRead,
  type LiveCache,
} from "../../state";
import type { LiveBatches } from "./batches";
import type { DependentFinder } from "./dependents";
import type { EarlyRead } from "./early-reads";
import type { Feed, FeedBatch } from "./feed-types";

/** Weight of the latest read in the average cost of reads. */
const LATEST_PART = 0.2;

export interface FeedReading {
  feed: Feed;
  reader: Reader;
  cache: Omit<LiveCache, "comparedAt" | "gapSeen">;
  /** The times with their read versions, and of the last schema check. */
  known: Pick<BaseCache, "trimPoints" | "trimmedTo" | "schemaSeenAt">;
  schemaTracker: Pick<SchemaTracker, "table">;
  dependents: Pick<DependentFinder, "graph">;
  /** Begins to read what a notification is probably about. */
  readEarly: () => EarlyRead | undefined;
  batches: Pick<LiveBatches, "read" | "failed">;
  cadence: () => Cadence;
  /** Called with the number of records that were found changed, and that the feed did not report. */
  onMissed: (foundBy: FoundBy, count: number) => void;
  stop: AbortSignal;
  /** True from the notification, or the due time, that causes a read until its changes are named; and at first. */
  isReading: boolean;
}

/** A read of the feed whose changes have not been named yet. */
export interface FeedRead {
  asked: { at: number; date: Date };
  batch: FeedBatch;
}

/**
 * Reads the feed forever.
 *
 * @param first a read that was made before
 */
export async function keepReading(reading: FeedReading, first?: FeedRead): Promise<void> {
  const { feed, reader, cache, batches, onMissed, stop } = reading;
  const { missedChanges } = cache;
  /** Foreground requests that are already included in the average cost of reads. */
  let counted = 0;
  let before = first;
  for (let failures = 0; ; ) {
    // An earlier lease may have read it recently. After a failed read, the reason for that read still holds.
    const restMs = Math.min(dueInMs(reading), missedChanges.judgedInMs(performance.now()));
    let isNotified = false;
    if (restMs > 0 && failures === 0 && !before) {
      await recordDue(reading);
      reading.isReading = false;
      isNotified = await feed.wakeUp(restMs, stop);
      reading.isReading = true;
      if (isNotified) await turnOf(reading);
    }
    reading.isReading = true;
    try {
      cache.readAt = await readToEnd(reading, isNotified, before);
      before = undefined;
      reading.isReading = false;
      const { requests } = reader.counts;
      cache.batchCalls += (requests - counted - cache.batchCalls) * LATEST_PART;
      counted = requests;
      const { sweep, comparison } = missedChanges.readToEnd(cache.readAt);
      if (sweep > 0) {
        onMissed("sweep", sweep);
        cache.missed += sweep;
      }
      if (comparison > 0) {
        reader.log.warn(
          { records: comparison },
          "rows differed from Airtable, and the feed did not report it",
        );
        onMissed("comparison", comparison);
        await feed.recordDrift();
      }
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isOfLease(error)) throw error;
      reader.log.debug({ error }, "reading the feed failed");
      const pauseMs = itemPauseMs(++failures, error);
      if (isOfTable(error)) await feed.recordFailing(error, pauseMs);
      else await batches.failed(error);
      await wait(pauseMs, stop);
    }
  }
}

/** Returns whether a read that failed so ends live mode. What the key may not read is found out by reading tables. */
export function isOfLease(error: BasetideError): boolean {
  return isWholeBases(error) && !isRefusedRead(error);
}

/** Waits until a notification may cause a read. */
export async function turnOf({
  cache: { bucket },
  cadence,
  stop,
}: Pick<FeedReading, "cadence" | "stop"> & { cache: Pick<LiveCache, "bucket"> }): Promise<void> {
  const { notificationGapMs } = cadence();
  await wait(bucket.waitMs(performance.now(), notificationGapMs), stop);
  bucket.take(performance.now(), notificationGapMs);
}

/** Records for the console when the feed is read next, and how many records wait. */
export async function recordDue(
  reading: Pick<FeedReading, "feed" | "cadence"> & {
    cache: Pick<LiveCache, "dirty" | "changedAt" | "readAt" | "missed">;
  },
): Promise<void> {
  const { cache, feed } = reading;
  const { dirty, changedAt, missed } = cache;
  const dueAt = new Date(Date.now() + dueInMs(reading));
  const facts = { waiting: dirty.waiting, ...(changedAt && { changedAt }), missed };
  cache.missed = 0;
  // What was not recorded is included in the next record.
  if (!(await feed.recordDue(dueAt, facts))) cache.missed += missed;
}

/** Returns the time until the feed is read without a notification, ms. */
export function dueInMs({
  cache,
  cadence,
}: Pick<FeedReading, "cadence"> & { cache: Pick<LiveCache, "readAt"> }): number {
  return Math.max(0, cache.readAt + cadence().pollMs - performance.now());
}

/** @returns when the last request was made (performance.now()) */
async function readToEnd(reading: FeedReading, isNotified: boolean, first?: FeedRead): Promise<number> {
  let early = isNotified ? reading.readEarly() : undefined;
  for (let before = first; ; before = undefined) {
    const { asked, batch } = before ?? (await readOnce(reading).finally(early?.feedIsRead));
    name(reading, batch, oldReadVersion(reading.known, asked.at), early);
    early = undefined;
    reading.batches.read(asked, isNews(batch.changes), !batch.mightHaveMore);
    if (!batch.mightHaveMore) return asked.at;
  }
}

export async function readOnce({ feed, reader }: Pick<FeedReading, "feed" | "reader">): Promise<FeedRead> {
  const asked = { at: performance.now(), date: new Date() };
  return { asked, batch: await feed.read(reader) };
}

/**
 * Returns a read version for destroyed records (I1, I2). The feed may report a deletion late, when the record has
 * already been restored and written by a client that knows so: any image that was logged for it since the read version
 * wins, and the record is read again. Undefined if no read version is old enough.
 */
function oldReadVersion(
  { trimPoints, trimmedTo }: FeedReading["known"],
  askedAt: number,
): number | undefined {
  // Taking a read version takes time, too.
  const old = trimPoints.findLast(({ at }) => at < askedAt - FEED_LATE_MS - SHORTEST_MS) ?? trimmedTo;
  return old?.readVersion;
}

/** Names the changes of the batch; nothing is awaited (L4). */
function name(
  reading: FeedReading,
  batch: FeedBatch,
  readVersion: number | undefined,
  early: EarlyRead | undefined,
): void {
  const { cache, schemaTracker, reader } = reading;
  const { dirty, missedChanges } = cache;
  const { from: cursor, changes, mightHaveMore } = batch;
  const now = performance.now();
  dirty.beginBatch(cursor);
  for (const [tableId, table] of changes.tables) {
    const { created, changed, told, destroyed, fieldsChanged, isUnreadable } = table;
    for (const ids of [created, changed.keys(), destroyed]) missedChanges.named(tableId, ids, now);
    for (const id of created) dirty.add(tableId, id, { cursor, why: "direct", fields: null, isNew: true });
    for (const [id, fields] of changed) {
      const cells = early?.tableId === tableId ? told.get(id) : undefined;
      dirty.add(tableId, id, {
        cursor,
        why: "direct",
        fields: fields.length > 0 ? new Set(fields) : null,
        early: cells && { answer: early!.answer, told: cells },
      });
    }
    for (const id of destroyed) dirty.add(tableId, id, { cursor, why: "destroyed", fields: null });
    const { source, live, isLeftOut } = schemaTracker.table(tableId);
    const isListed = source !== undefined || isLeftOut === true;
    // Its changes are read again with all others of the table.
    if (isUnreadable && isListed) {
      reader.log.warn(
        { tableId },
        "the feed reports changes of a table that cannot be read; reading it again",
      );
      dirty.addTable(tableId, cursor);
    }
    if (!isListed) suspectUnlisted(reading, tableId, cursor);
    else if (fieldsChanged || isUnreadable || (source && !live)) dirty.suspect(tableId, cursor);
    nameRetyped(reading, tableId, table, cursor);
  }
  const { tablesCreated, tablesDestroyed, tablesChanged } = changes;
  for (const tableId of tablesCreated) dirty.suspect(tableId, cursor);
  for (const tableId of [...tablesDestroyed, ...tablesChanged]) {
    const { source, live, isLeftOut } = schemaTracker.table(tableId);
    if (source || live || isLeftOut) dirty.suspect(tableId, cursor);
    else suspectUnlisted(reading, tableId, cursor);
  }
  dirty.endBatch(batch.cursor);
  if (!mightHaveMore && readVersion !== undefined) dirty.endFeed(readVersion);
  if (isNews(changes)) cache.changedAt = new Date();
  cache.editedTables.named(changes.tables.keys());
}

/**
 * Requests a schema check for a table that the schema does not list, unless it was read within the last minute: Airtable
 * also reports changes of tables that the schema never lists.
 */
function suspectUnlisted({ cache, known }: FeedReading, tableId: string, cursor: number): void {
  if (performance.now() - known.schemaSeenAt >= MINUTE_MS) cache.dirty.suspect(tableId, cursor);
}

/**
 * Requests a sweep for a field that had another type, if only for a moment: it may have other cells now, which need
 * not be reported. Includes the tables whose cells depend on it. A schema check does not notice this when the type is
 * the original one again.
 */
function nameRetyped(
  { schemaTracker, cache, dependents }: FeedReading,
  tableId: string,
  { typesTold }: ChangedTable,
  cursor: number,
): void {
  const columns = schemaTracker.table(tableId).live?.spec.columns ?? [];
  for (const { fieldId, sourceType } of columns) {
    if (!typesTold.get(fieldId)?.some((type) => type !== sourceType)) continue;
    const reached = dependents.graph?.hops(tableId, fieldId) ?? [];
    for (const id of new Set([tableId, ...reached.map((hop) => hop.tableId)]))
      cache.dirty.addTable(id, cursor);
  }
}

function isNews({ tables, tablesCreated, tablesDestroyed, tablesChanged }: SourceChanges): boolean {
  return tables.size + tablesCreated.length + tablesDestroyed.length + tablesChanged.length > 0;
}
