/**
 * Live mode: the source tells which records, fields and tables have changed; those are read again, with what hangs on
 * them. Beside it a sweep goes over the tables one by one, slowly: it finds what live mode misses, and counts it.
 *
 * A sync, for the run history, is a batch over what the feed told, or a pass of the sweep beside. `_sync_meta` is a clock
 * of how fresh SQL is: it goes by the reads of the feed, and stands still while changes are missing from that.
 * I3. The feed's cursor moves only past what is durable in the replica; see `DirtySet`.
 */

import type { Notifier } from "../../../async";
import { TaskGroup } from "../../../async";
import type { Reader, Sweep } from "../../engine";
import type { Cadence, CadenceFacts } from "../../pacing";
import type { DirtySet, LiveCache, MassChange, MissedChanges } from "../../state";
import type { SyncSession, SyncSessionInput } from "../shared";
import { endIfOver, keepRebuilding, keepSweeping } from "../shared";
import { keepCheckingSchema } from "./apply-schema";
import { keepComparing, keepLogShort, rebuildWatch, scanWatch } from "./background";
import type { LiveBatches } from "./batches";
import type { Dependants } from "./dependents";
import type { Feed } from "./feed-types";
import { openLive } from "./open-live";
import { keepReading } from "./read-feed";
import { keepWorking } from "./work";

export interface LiveInput extends SyncSessionInput {
  feed: Feed;
  /** How often what is done, by what the base is like at that moment. */
  cadence: (facts: Omit<CadenceFacts, "ratePerSecond">) => Cadence;
  /** Told of records that only a sweep found changed. */
  onMissed: (count: number) => void;
  /** When a record that is named and not there is looked for again, ms; as `reread.ts` has it unless given. */
  absentMs?: readonly number[] | undefined;
  /** Compares SQL with the source, once: whether the feed tells everything. */
  compare?: ((live: Live) => Promise<void>) | undefined;
}

export interface Live extends SyncSession<LiveInput> {
  feed: Feed;
  cache: LiveCache;
  dirty: DirtySet;
  missedChanges: MissedChanges;
  batches: LiveBatches;
  dependants: Dependants;
  /** For reads of the feed, and for the records that it names. */
  feedReader: Reader;
  namedReader: Reader;
  /** For what follows from those, and for tables that are read whole because of them. */
  foreground: Sweep;
  /** Is any table being worked on? */
  isWorking: boolean;
  /** Rung when there is something to work on. */
  wake: Notifier;
  /** Rung when the schema is to be looked at. */
  schemaNotifier: Notifier;
  massChanges: Map<string, MassChange>;
  /** Requests in front that have been counted among what reads of the feed cost. */
  callsCounted: number;
  /** When the feed is to be read next, if nobody rings. */
  dueAt: Date;
  cadence(): Cadence;
  /** Something was settled: batches may be over, the cursor may move. */
  settled(): void;
  /** The cursor is as durable as what it stands for. */
  saved(): Promise<void>;
  /** The sweep beside hurries while changes are missing from the feed. */
  hurryForGap(): void;
  /** Tells people how the feed is read, and how much waits. */
  note(): Promise<void>;
  countMissedChanges(count: number): Promise<void>;
}

/**
 * Reads the feed, and sweeps beside it, until the lease is over.
 *
 * @throws BasetideError what ends the sync of the whole base: `sync_stopped`, `lease_lost`, what needs attention
 */
export async function liveBase(input: LiveInput): Promise<void> {
  using taskGroup = new TaskGroup(input.reader.stop);
  const live = await openLive(input, taskGroup);
  const { stop, batches } = live;
  try {
    await taskGroup.run([
      keepReading(live),
      keepWorking(live),
      batches.keepCompleting(stop, async () => {
        await live.note();
        endIfOver(live);
      }),
      keepCheckingSchema(live),
      keepRebuilding(live, rebuildWatch(live)),
      keepSweeping(live, scanWatch(live)),
      keepLogShort(live),
      keepComparing(live),
    ]);
  } finally {
    await batches.end();
  }
  await live.saved();
}
