/** Sets up live mode for a lease. */

import type { Fate } from "../../../async";
import { Bell } from "../../../async";
import { Shapes, typeSettingsOf } from "../../engine";
import { ACTIVE_FOR_MS, type Cadence, type CadenceFacts, QuotaSplit, sweepCallsOf } from "../../pacing";
import { emptyLiveMemory } from "../../state";
import { laneReader } from "../shared";
import { sweepsChanges } from "./background";
import { Rounds } from "./batches";
import { Dependants } from "./dependents";
import type { Live, LiveInput } from "./live";
import { settledByReading } from "./reread";
import { sizeOf } from "./work";

/**
 * While what is in front wants all, one place in so many is the sweep's. Where clients leave one place a second, more
 * would keep too many changes waiting for a second longer.
 */
const SWEEP_EVERY = 60;
/**
 * How long a request may be kept waiting by those that came after it, ms: records that the feed has named go before the
 * next read of the feed, and that before what only hangs on them.
 */
export const FEED_PATIENCE_MS = 300;
export const DEPENDANT_PATIENCE_MS = 1000;
/** A round's next call comes this soon after the one before: what the source takes to answer, and some, ms. */
const HOLD_MS = 700;

/** Everything that a base in live mode goes by, as its lease begins. */
export async function openLive(input: LiveInput, fate: Fate): Promise<Live> {
  const { base, replica, feed } = input;
  const { stop } = fate;
  input.memory.live ??= emptyLiveMemory();
  const memory = input.memory.live;
  const { pending, misses } = memory;
  // Not known before the shapes are.
  let cadence: (() => Cadence) | undefined;
  const pace = () => ({ every: SWEEP_EVERY, gapMs: cadence?.().sweepCallMs ?? 0, holdMs: HOLD_MS });
  const split = new QuotaSplit(input.reader.ledger, pace, stop, { isLive: true });
  const namedReader = laneReader(input, split, "front", stop, "records");
  // Counted together.
  const feedReader = { ...namedReader, ledger: split.lane("front", FEED_PATIENCE_MS) };
  const frontReader = { ...namedReader, ledger: split.lane("front", DEPENDANT_PATIENCE_MS) };
  const besideReader = laneReader(input, split, "beside", stop);
  const shapes = await Shapes.open({
    ...input,
    reader: frontReader,
    settings: typeSettingsOf(input),
    signal: stop,
    get schemaPollMs() {
      return cadence?.().schemaMs ?? Number.POSITIVE_INFINITY;
    },
  });
  let saving: Promise<void> = Promise.resolve();
  let savedCursor = 0;
  const sweep = { ...input, shapes, onProgress: () => {} };
  const live: Live = {
    input,
    shapes,
    split,
    fate,
    stop,
    feed,
    memory,
    pending,
    misses,
    rounds: new Rounds(
      {
        replica,
        epoch: input.epoch,
        pending,
        hasGap: () => feed.gapSince !== null,
        counts: frontReader.counts,
        onRun: input.onRun,
      },
      base.error !== null,
    ),
    dependants: new Dependants({
      replica,
      shapes,
      memory: input.memory,
      connection: input.reader.connection,
      linkedRecordsAsText: base.settings.linkedRecordsAsText,
      hasLastingUrls: input.attachmentUrls !== undefined,
    }),
    beside: { ...sweep, reader: besideReader, onChanges: (...found) => sweepsChanges(live, ...found) },
    feedReader,
    namedReader,
    front: { ...sweep, reader: frontReader, onChanges: (...found) => sweepsChanges(live, ...found) },
    reading: new Set(),
    sweeping: new Map(),
    onReading: (tableId) => settledByReading(live, tableId),
    isWorking: false,
    wake: new Bell(),
    schemaBell: new Bell(),
    massChanges: new Map(),
    callsCounted: 0,
    dueAt: new Date(),
    cadence: () => input.cadence(factsOf(live)),
    settled() {
      live.rounds.tally({});
      const cursor = pending.durableCursor;
      if (cursor <= savedCursor) return;
      savedCursor = cursor;
      // One after the other, and only the latest.
      saving = saving
        .then(() => (savedCursor === cursor ? feed.save(cursor) : undefined))
        .catch((error) => fate.end(error));
    },
    saved: () => saving,
    followGap: () => split.hurry("gap", feed.gapSince !== null),
    note() {
      const { changedAt } = memory;
      return feed.noteDue(live.dueAt, { waiting: pending.size, ...(changedAt && { changedAt }) });
    },
    async countMissed(count) {
      input.onMissed(count);
      await feed.addMissed(count);
    },
  };
  cadence = live.cadence;
  live.followGap();
  const { isOver } = input;
  live.input = { ...input, isOver: () => isOver() && !live.rounds.isActive && !live.isWorking };
  return live;
}

function factsOf({ input, feed, memory, shapes, dependants }: Live): Omit<CadenceFacts, "ratePerSecond"> {
  const { changedAt, roundCalls } = memory;
  const { tables } = shapes;
  return {
    mode: "live",
    hasPings: feed.hasPings,
    isActive: changedAt !== undefined && Date.now() - changedAt.getTime() < ACTIVE_FOR_MS,
    sweepCalls: sweepCallsOf(tables.map(({ id }) => ({ records: sizeOf(input, id) ?? 0 }))),
    tables: tables.length,
    changesByItself: dependants.changesByItself,
    roundCalls,
  };
}
