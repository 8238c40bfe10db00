/** Sets up live mode for a lease. */

import type { TaskGroup } from "../../../async";
import { Notifier } from "../../../async";
import { SchemaTracker, typeSettingsOf } from "../../engine";
import { ACTIVE_FOR_MS, type Cadence, type CadenceFacts, QuotaSplit, sweepCallsOf, URGENT_PACE } from "../../pacing";
import { LiveCache } from "../../state";
import { readerWithPriority } from "../shared";
import { sweepsChanges } from "./background";
import { LiveBatches } from "./batches";
import { Dependants } from "./dependents";
import type { Live, LiveInput } from "./live";
import { settledByReading } from "./reread";
import { sizeOf } from "./work";

/**
 * While the foreground uses all reservations, one in this many goes to the scan. If clients leave one reservation a
 * second, a larger part would delay too many changes by another second.
 */
const SWEEP_EVERY = 60;
/**
 * How long a request may wait behind later ones, ms: records that the feed has named go before the next read of the
 * feed, and that goes before their dependents.
 */
export const FEED_PATIENCE_MS = 300;
export const DEPENDANT_PATIENCE_MS = 1000;
/** The next call of a batch follows this soon after the previous one: the source's response time and a margin, ms. */
const HOLD_MS = 700;

/** Creates the state of live mode as a lease begins. */
export async function openLive(input: LiveInput, taskGroup: TaskGroup): Promise<Live> {
  const { base, replica, feed } = input;
  const { stop } = taskGroup;
  input.cache.live ??= new LiveCache();
  const cache = input.cache.live;
  const { dirty, missedChanges } = cache;
  // Not known before the schema is.
  let cadence: (() => Cadence) | undefined;
  const usualPace = () => ({ every: SWEEP_EVERY, gapMs: cadence?.().sweepCallMs ?? 0, holdMs: HOLD_MS });
  const pace = () => (feed.gapSince ? URGENT_PACE : usualPace());
  const split = new QuotaSplit(input.reader.limiter, pace, stop, { isLive: true });
  const namedReader = readerWithPriority(input, split, "foreground", stop, "records");
  // Their requests are counted together.
  const feedReader = { ...namedReader, limiter: split.limiterFor("foreground", FEED_PATIENCE_MS) };
  const foregroundReader = { ...namedReader, limiter: split.limiterFor("foreground", DEPENDANT_PATIENCE_MS) };
  const backgroundReader = readerWithPriority(input, split, "background", stop);
  const schemaTracker = await SchemaTracker.open({
    ...input,
    reader: foregroundReader,
    settings: typeSettingsOf(input),
    signal: stop,
    get schemaPollMs() {
      return cadence?.().schemaMs ?? Number.POSITIVE_INFINITY;
    },
  });
  let saving: Promise<void> = Promise.resolve();
  let savedCursor = 0;
  const sweep = { ...input, schemaTracker, onProgress: () => {} };
  const live: Live = {
    input,
    schemaTracker,
    split,
    taskGroup,
    stop,
    feed,
    cache,
    dirty,
    missedChanges,
    batches: new LiveBatches(
      {
        replica,
        epoch: input.epoch,
        dirty,
        hasGap: () => feed.gapSince !== null,
        counts: foregroundReader.counts,
        onRun: input.onRun,
      },
      base.error !== null,
    ),
    dependants: new Dependants({
      replica,
      schemaTracker,
      cache: input.cache,
      connection: input.reader.connection,
      linkedRecordsAsText: base.settings.linkedRecordsAsText,
      hasLastingUrls: input.attachmentUrls !== undefined,
    }),
    background: {
      ...sweep,
      reader: backgroundReader,
      onChanges: (...found) => sweepsChanges(live, ...found),
    },
    feedReader,
    namedReader,
    foreground: {
      ...sweep,
      reader: foregroundReader,
      onChanges: (...found) => sweepsChanges(live, ...found),
    },
    reading: new Set(),
    sweeping: new Map(),
    onReading: (tableId) => settledByReading(live, tableId),
    isWorking: false,
    wake: new Notifier(),
    schemaNotifier: new Notifier(),
    massChanges: new Map(),
    callsCounted: 0,
    dueAt: new Date(),
    cadence: () => input.cadence(factsOf(live)),
    settled() {
      live.batches.tally({});
      const cursor = dirty.durableCursor;
      if (cursor <= savedCursor) return;
      savedCursor = cursor;
      // One save after another, and only the latest cursor.
      saving = saving
        .then(() => (savedCursor === cursor ? feed.save(cursor) : undefined))
        .catch((error) => taskGroup.end(error));
    },
    saved: () => saving,
    note() {
      const { changedAt } = cache;
      return feed.recordDue(live.dueAt, { waiting: dirty.size, ...(changedAt && { changedAt }) });
    },
    async countMissedChanges(count) {
      input.onMissed(count);
      await feed.addMissedChanges(count);
    },
  };
  cadence = live.cadence;
  const { isOver } = input;
  live.input = { ...input, isOver: () => isOver() && !live.batches.isActive && !live.isWorking };
  return live;
}

function factsOf({
  input,
  feed,
  cache,
  schemaTracker,
  dependants,
}: Live): Omit<CadenceFacts, "ratePerSecond"> {
  const { changedAt, batchCalls } = cache;
  const { tables } = schemaTracker;
  return {
    mode: "live",
    hasNotifications: feed.hasNotifications,
    isActive: changedAt !== undefined && Date.now() - changedAt.getTime() < ACTIVE_FOR_MS,
    sweepCalls: sweepCallsOf(tables.map(({ id }) => ({ records: sizeOf(input, id) ?? 0 }))),
    tables: tables.length,
    changesByItself: dependants.changesByItself,
    batchCalls,
  };
}
