/**
 * Live mode: the source reports which records, fields and tables have changed; those are read again, with their
 * dependents. In the background a slow scan sweeps the tables one by one: it finds and counts missed changes.
 *
 * In the run history, a sync is a batch of reported changes, or a background scan. `_sync_meta` shows how fresh SQL
 * is: it follows the reads of the feed, and does not advance during a feed gap.
 * I3. The feed's cursor advances only past changes that are durable in the replica; see `DirtySet`.
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
  /** Returns the intervals of all activities, by the current facts about the base. */
  cadence: (facts: Omit<CadenceFacts, "ratePerSecond">) => Cadence;
  /** Called with the number of records that only a sweep found changed. */
  onMissed: (count: number) => void;
  /** When a named record that was not found is looked for again, ms; defaults to the times in `reread.ts`. */
  absentMs?: readonly number[] | undefined;
  /** Compares SQL with the source, once, to check that the feed reports everything. */
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
  /** For their consequences, and for tables that are read completely because of them. */
  foreground: Sweep;
  /** True while any table is being worked on. */
  isWorking: boolean;
  /** Notified when there are entries to work on. */
  wake: Notifier;
  /** Notified when a schema check is needed. */
  schemaNotifier: Notifier;
  massChanges: Map<string, MassChange>;
  /** Foreground requests that are already included in the average cost of feed reads. */
  callsCounted: number;
  /** When the feed will be read next without a notification. */
  dueAt: Date;
  cadence(): Cadence;
  /** Call after entries were acknowledged: batches may be over, and the cursor may advance. */
  settled(): void;
  /** Resolves when the latest save of the cursor has finished. */
  saved(): Promise<void>;
  /** Records for the console how the feed is read, and how many records wait. */
  note(): Promise<void>;
  countMissedChanges(count: number): Promise<void>;
}

/**
 * Reads the feed, and scans in the background, until the lease is over.
 *
 * @throws BasetideError an error that ends the sync of the whole base: `sync_stopped`, `lease_lost`, or one that needs
 *   attention
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
