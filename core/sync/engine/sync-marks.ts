/**
 * Begins and completes syncs in the replica. Syncs of one lease follow each other, so the statement that completes one
 * also prepares the next: it takes the read version, and says whether the catalog has changed and which tables other
 * processes have written. An unchanged sweep then sends this one statement.
 *
 * Until a prepared sync has run for a while, `_sync_meta` shows that none is running. If a lease ends between two
 * syncs, nothing has to be withdrawn.
 */
import {
  beginSync,
  type Catalog,
  completeSync,
  type KnownCatalog,
  markSyncRunning,
  markSyncStarted,
  type Replica,
  recordDamage,
  type SyncTimes,
  takeReadVersion,
} from "../../replica";
import { type BaseCache, forgetRows, QUIET_SWEEP_AGE_MS, ReadVersionSource, SWEEP_AGE_MS } from "../state";

/** A prepared sync may begin this long after it was prepared, ms. */
const PREPARED_MS = 5000;
/**
 * After this time, `_sync_meta` shows a prepared sync as running, ms. Where other processes write, it then needs a second
 * statement anyway, for another read version.
 */
export const RUNNING_AFTER_MS = SWEEP_AGE_MS - 1000;
/** Clocks that are being adjusted run up to 500 µs in a second fast or slow; twice that is counted off. */
const CLOCK_RATE = 0.999;

/** Hands what one sync has prepared to the next one of the lease. */
export interface NextSync {
  prepared?: Prepared | undefined;
}

interface Marking {
  replica: Replica;
  epoch: number;
  cache: BaseCache;
  isForced: boolean;
  next?: NextSync | undefined;
}

type Known = Awaited<ReturnType<typeof beginSync>> & {
  catalog: KnownCatalog | null;
  loggedUpTo: Map<string, number>;
  /** When the statement was sent and answered (performance.now()). */
  sentAt: number;
  answeredAt: number;
  /** Whether the recent-writes log had any entries; undefined if that is not known. */
  hasRecentWrites?: boolean;
};

type Prepared = Known & { epoch: number; preparedAt: Date; hasRecentWrites: boolean };

/** A sync that has begun, and what is known of the replica. */
export interface BegunSync {
  /** Absent if the known catalog may have changed. */
  catalog: Catalog | undefined;
  /** See `Sweep`. */
  unwritten: Map<string, number>;
  /** For sweeps: they may use a read version for longer than other reads. */
  readVersions: ReadVersionSource;
  /** Of a prepared sync. */
  times: SyncTimes | undefined;
  mark: RunningMark;
}

/** Begins a sync: without a statement if the one before has just prepared it. */
export async function beginMarked(input: Marking): Promise<BegunSync> {
  const { replica, epoch, cache, isForced, next } = input;
  const prepared = next?.prepared;
  if (next) next.prepared = undefined;
  const startedAt = performance.now();
  if (prepared?.epoch === epoch && !isForced && startedAt - prepared.sentAt <= PREPARED_MS) {
    const sinceMs = Math.floor((startedAt - prepared.answeredAt) * CLOCK_RATE);
    const { preparedAt } = prepared;
    const times = { preparedAt, startedAt: new Date(preparedAt.getTime() + sinceMs) };
    const begun = begunWith(replica, cache, prepared);
    const mark = new RunningMark(async () => {
      const sentAt = performance.now();
      if (isQuiet(prepared)) await markSyncStarted(replica, epoch, sentAt - startedAt);
      else begun.readVersions.offer(await markSyncRunning(replica, epoch, sentAt - startedAt), sentAt);
    });
    return { ...begun, times, mark };
  }
  // The user who clicks Resync may have dropped a table a moment ago.
  if (isForced) forgetRows(cache, await recordDamage(replica, epoch));
  const { loggedUpTo, catalog } = knownTables(cache);
  const sentAt = performance.now();
  const begun = await beginSync(replica, epoch, { catalog: catalog?.state ?? null, loggedUpTo });
  const known = { ...begun, catalog, loggedUpTo, sentAt, answeredAt: performance.now() };
  return { ...begunWith(replica, cache, known), times: undefined, mark: new RunningMark() };
}

/** Completes the sync, and prepares the next one if there will be one. @returns the state of `_sync_issues` */
export async function completeMarked(
  { replica, epoch, cache, next }: Marking,
  { times, mark }: BegunSync,
): Promise<string> {
  await mark.settle();
  const { loggedUpTo, catalog } = knownTables(cache);
  const sentAt = performance.now();
  const { issues, prepared } = await completeSync(replica, epoch, {
    times,
    next: next && { catalog: catalog?.state ?? null, loggedUpTo },
  });
  if (next && prepared)
    next.prepared = { ...prepared, epoch, catalog, loggedUpTo, sentAt, answeredAt: performance.now() };
  return issues;
}

function knownTables({ tables, catalog }: BaseCache): Pick<Known, "catalog" | "loggedUpTo"> {
  return { catalog, loggedUpTo: new Map([...tables].map(([id, table]) => [id, table.loggedUpTo])) };
}

/** Whether nothing has written to the base for some minutes. */
function isQuiet({ hasRecentWrites = true }: Known): boolean {
  return !hasRecentWrites;
}

function begunWith(replica: Replica, cache: BaseCache, known: Known) {
  const { readVersion, isSameCatalog, written, catalog, loggedUpTo, sentAt } = known;
  const ageMs = isQuiet(known) ? QUIET_SWEEP_AGE_MS : SWEEP_AGE_MS;
  const readVersions = new ReadVersionSource(() => takeReadVersion(replica), ageMs);
  readVersions.offer(readVersion, sentAt);
  for (const id of written) loggedUpTo.delete(id);
  const isKnown = isSameCatalog && cache.catalog === catalog;
  return { catalog: isKnown ? catalog?.catalog : undefined, unwritten: loggedUpTo, readVersions };
}

/** Whether `_sync_meta` shows a sync as running: that of a prepared one only after a while. */
class RunningMark {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sent: Promise<void> | undefined;

  /** @param send absent: it is shown already */
  constructor(send?: () => Promise<void>) {
    if (!send) this.#sent = Promise.resolve();
    else
      this.#timer = setTimeout(() => {
        // Nothing depends on it.
        this.#sent = send().catch(() => {});
      }, RUNNING_AFTER_MS);
  }

  /** True if `_sync_meta` may show the sync as running. */
  get isSent(): boolean {
    return this.#sent !== undefined;
  }

  /** From now on, nothing more is sent. */
  cancel(): void {
    clearTimeout(this.#timer);
  }

  /** Cancels, and waits for what was sent: it must not overwrite the end of the sync. */
  async settle(): Promise<void> {
    this.cancel();
    await this.#sent;
  }
}
