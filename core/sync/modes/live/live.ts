/**
 * Live mode: the source reports which records, fields and tables have changed; those are read again, with their
 * dependents. In the background a slow scan sweeps the tables one by one: it finds and counts missed changes.
 *
 * In the run history, a sync is a batch of reported changes, or a background scan. `_sync_meta` shows how fresh SQL
 * is: it follows the reads of the feed, and does not advance during a feed gap.
 * I3. The feed's cursor advances only past changes that are durable in the replica; see `DirtySet`.
 */

import { TaskGroup } from "../../../async";
import { SchemaTracker, type Sweep } from "../../engine";
import { type Cadence, type CadenceFacts, REST_MS, sweepCallsOf } from "../../pacing";
import { type FoundBy, LiveCache, unpackCache } from "../../state";
import type { SyncSession, SyncSessionInput } from "../shared";
import { asking, rebuilding, scanning, schedulerOf, sweepExclusively } from "../shared";
import { checkingSchema } from "./apply-schema";
import { comparing, rebuildWatch, recordFound, scanWatch, trimming } from "./background";
import { LiveBatches } from "./batches";
import { DependentFinder } from "./dependents";
import type { SourceComparison } from "./drift";
import { beginEarlyRead } from "./early-reads";
import type { Feed } from "./feed-types";
import { liveReaders } from "./live-readers";
import { type FeedRead, type FeedReading, keepReading, recordDue } from "./read-feed";
import { settledByReading } from "./reread";
import { isSettled, liveCadence, liveRestOf, type Rest } from "./rest";
import { savingCursor } from "./save-cursor";
import { knownSize, working } from "./work";

export interface LiveInput extends SyncSessionInput {
  feed: Feed;
  /** Returns the intervals of all activities, by the current facts about the base. */
  cadence: (facts: Omit<CadenceFacts, "ratePerSecond">) => Cadence;
  /** Called with the number of records that were found changed, and that the feed did not report. */
  onMissed: (foundBy: FoundBy, count: number) => void;
  /** When a named record that was not found is looked for again, ms; defaults to the times in `reread.ts`. */
  absentMs?: readonly number[] | undefined;
  /** Compares SQL with the source, once, to check that the feed reports everything. */
  compare?: ((replica: ComparedReplica) => Promise<unknown>) | undefined;
  /** The platform's filter, if it has one. */
  modifiedSince?: ((sinceMs: number) => string) | undefined;
  /** A read of the feed from before live mode started. */
  first?: FeedRead | undefined;
  /** Ends when the base is at rest, too. */
  endsAtRest?: boolean;
}

/** What a comparison needs to know about the replica, and about the changes that wait. */
export type ComparedReplica = Sweep & Pick<SourceComparison, "isPending" | "onDifference">;

/**
 * Reads the feed, and scans in the background, until the lease is over. Gives each loop what it reads and what it
 * reports to; the dirty set wakes those that wait for each other.
 *
 * @returns how the base can rest, if it ended because the base is at rest
 * @throws BasetideError an error that ends the sync of the whole base: `sync_stopped`, `lease_lost`, or one that needs
 *   attention
 */
export async function liveBase(input: LiveInput): Promise<Rest | undefined> {
  using taskGroup = new TaskGroup(input.reader.stop);
  const { stop } = taskGroup;
  const {
    base,
    replica,
    epoch,
    feed,
    cache: baseCache,
    absentMs,
    compare,
    modifiedSince,
    onMissed,
    onRun,
  } = input;
  const { connection, log } = input.reader;
  unpackCache(baseCache);
  baseCache.live ??= new LiveCache();
  const cache = baseCache.live;
  const { dirty, missedChanges } = cache;

  // Not known before the schema is.
  let known: (() => Cadence) | undefined;
  const readers = liveReaders(input, () => known?.().sweepCallMs ?? 0, stop);
  const schemaTracker = await SchemaTracker.open({
    ...input,
    reader: readers.foreground,
    get schemaPollMs() {
      return known?.().schemaMs ?? Number.POSITIVE_INFINITY;
    },
  });
  const dependents = new DependentFinder({
    replica,
    schemaTracker,
    cache: baseCache,
    connection,
    reader: readers.foreground,
    hasLastingUrls: input.attachmentUrls !== undefined,
  });
  const sizeOf = (tableId: string) => knownSize(input, tableId);
  const sizes = () => sizesOf(input, schemaTracker, dependents);
  const cadence = () => liveCadence(input, cache, sizes());
  known = cadence;

  const hasGap = () => feed.gapSince !== null;
  const { counts } = readers.foreground;
  const refusal = () => schemaTracker.refusal;
  const reporting = { replica, epoch, dirty, hasGap, refusal, counts, onRun };
  const batches = new LiveBatches(reporting, base.error !== null);
  const onChanges: Sweep["onChanges"] = (tableId, ids) => recordFound(feed, cache, tableId, ids);
  const sweep = { ...input, schemaTracker, onProgress: () => {}, onChanges };
  const foreground: Sweep = { ...sweep, reader: readers.foreground };
  const naming = { dirty, dependents, missedChanges };
  let rest: Rest | undefined;
  const isAtRest = () => {
    const isBusy = reading.isReading || !batches.isSettled || isWorking() || !schemaTracker.isSettled;
    if (isBusy || !input.endsAtRest || !isSettled(input)) return false;
    rest = liveRestOf(input, sizes());
    return rest.dueInMs() >= REST_MS && rest.readInMs() >= REST_MS;
  };
  const session: SyncSession = {
    input: {
      ...input,
      isOver: () => (input.isOver() && ((!batches.isActive && !isWorking()) || isHeldUp())) || isAtRest(),
    },
    schemaTracker,
    split: readers.split,
    taskGroup,
    stop,
    background: { ...sweep, reader: readers.background },
    reading: new Set(),
    sweeping: new Map(),
    onReading: (tableId) => settledByReading(naming, tableId),
  };

  const early = {
    reader: readers.foreground,
    schemaTracker,
    cache: baseCache,
    editedTables: cache.editedTables,
  };
  const reading: FeedReading = {
    feed,
    reader: readers.feed,
    cache,
    known: baseCache,
    schemaTracker,
    dependents,
    readEarly: () => modifiedSince && beginEarlyRead({ ...early, modifiedSince }),
    batches,
    cadence,
    onMissed,
    stop,
    isReading: true,
  };
  const compared: ComparedReplica = {
    ...foreground,
    isPending: (tableId, id) => dirty.has(tableId, id),
    onDifference: (tableId, ids) => missedChanges.found(tableId, ids, performance.now(), "comparison"),
  };
  const work = working({
    ...naming,
    batches,
    namedReader: readers.named,
    foreground,
    absentMs,
    sizeOf,
    sweep: (tableId) => sweepExclusively(session, foreground, tableId, true),
  });
  const cursor = savingCursor({ dirty, feed });
  const scheduler = schedulerOf(session, dirty.wake, [
    batches.completing(() => recordDue(reading)),
    cursor.kind,
    checkingSchema({ schemaTracker, cache: baseCache, connection, dirty, batches }),
    work,
    rebuilding(session, rebuildWatch(session, batches)),
    asking(session, (tableId) => waiting().includes(tableId)),
    scanning(session, scanWatch({ cache, scans: baseCache, feed, batches, cadence })),
    trimming(session),
    comparing({ compare: compare && (() => compare(compared)), cache, cadence, log }),
  ]);
  const isWorking = () => scheduler.running(work).length > 0;
  /** The tables with changes that wait, or are written. */
  const waiting = () => [...scheduler.running(work), ...dirty.tables()];
  /** Whether all changes that wait are of tables that cannot be read or written: the lease is renewed without them. */
  const isHeldUp = () => {
    const ids = waiting();
    return ids.length > 0 && ids.every((id) => baseCache.failing.has(id));
  };
  try {
    await taskGroup.run([keepReading(reading, input.first), scheduler.run()]);
  } finally {
    await batches.end();
    await cursor.save();
  }
  return isAtRest() ? rest : undefined;
}

/** What the pace depends on, besides the cache and the budget. */
function sizesOf(
  input: Pick<LiveInput, "base" | "cache">,
  { tables }: Pick<SchemaTracker, "tables">,
  { changesByItself }: Pick<DependentFinder, "changesByItself">,
) {
  const sizes = tables.map(({ id }) => ({ records: knownSize(input, id) ?? 0 }));
  return { sweepCalls: sweepCallsOf(sizes), tables: tables.length, changesByItself };
}
