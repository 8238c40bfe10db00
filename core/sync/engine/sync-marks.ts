/**
 * Begins and completes syncs in the replica. Syncs of one lease follow each other, so the statement that completes one
 * also begins the next: it takes the read version, and says whether the catalog has changed and which tables other
 * processes have written. An unchanged sweep then sends this one statement.
 *
 * R2. `_sync_meta` shows a sync as running (`started_at` is later than `completed_at`) from its first moment, and no
 * other: one that follows at once starts at the end of the one before, and one that does not begin after all is withdrawn
 * (`withdrawNext`). After the death of a worker, a sync is shown as running until the next lease begins.
 * I3. Pages and records that equal those of the sync before are not compared with SQL, but other processes write to SQL
 * meanwhile. A sync completes only after it has requested the records that they wrote.
 */
import {
  beginSync,
  type Catalog,
  completeSync,
  type KnownCatalog,
  type KnownTables,
  type Replica,
  recordDamage,
  takeReadVersion,
} from "../../replica";
import { type BaseCache, forgetRows, QUIET_SWEEP_AGE_MS, ReadVersionSource, SWEEP_AGE_MS } from "../state";
import { endSync } from "./report";

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
  /** When the statement was sent (performance.now()). */
  sentAt: number;
  /** Whether the recent-writes log had any entries; undefined if that is not known. */
  hasRecentWrites?: boolean;
};

type Prepared = Known & { epoch: number; hasRecentWrites: boolean };

/** A sync that has begun, and what is known of the replica. */
export interface BegunSync {
  /** Absent if the known catalog may have changed. */
  catalog: Catalog | undefined;
  /** See `Sweep`. */
  unwritten: Map<string, number>;
  /** For sweeps: they may use a read version for longer than other reads. */
  readVersions: ReadVersionSource;
}

/** Begins a sync: without a statement if the end of the one before has just done so. */
export async function beginMarked(input: Marking): Promise<BegunSync> {
  const { replica, epoch, cache, isForced, next } = input;
  const prepared = next?.prepared;
  if (next) next.prepared = undefined;
  if (prepared?.epoch === epoch && !isForced && performance.now() - prepared.sentAt <= SWEEP_AGE_MS)
    return begunWith(replica, cache, prepared);
  // The user who clicks Resync may have dropped a table a moment ago.
  if (isForced) forgetRows(cache, await recordDamage(replica, epoch));
  const known = knownTables(cache);
  const sentAt = performance.now();
  const begun = await beginSync(replica, epoch, stateOf(known));
  return begunWith(replica, cache, { ...begun, ...known, sentAt });
}

/**
 * Completes the sync, and begins the next one if there will be one.
 *
 * @param check requests what other processes have written to these tables since their recent-writes log was read
 * @returns the state of `_sync_issues`
 */
export async function completeMarked(
  { replica, epoch, cache, next }: Marking,
  check: (tableIds: string[]) => Promise<void>,
): Promise<string> {
  for (let isChecked = false; ; isChecked = true) {
    const known = knownTables(cache);
    const sentAt = performance.now();
    const completed = await completeSync(replica, epoch, stateOf(known), {
      begins: next !== undefined,
      isChecked,
    });
    if (completed.overtaken) await check(completed.overtaken);
    else {
      if (next && completed.next) next.prepared = { ...completed.next, ...known, epoch, sentAt };
      return completed.issues;
    }
  }
}

/** Shows that the next sync does not begin after all. Never fails. */
export async function withdrawNext(next: NextSync, replica: Replica, epoch: number): Promise<void> {
  if (!next.prepared) return;
  next.prepared = undefined;
  await endSync(replica, epoch);
}

function knownTables({ tables, catalog }: BaseCache): Pick<Known, "catalog" | "loggedUpTo"> {
  return { catalog, loggedUpTo: new Map([...tables].map(([id, table]) => [id, table.loggedUpTo])) };
}

function stateOf({ catalog, loggedUpTo }: Pick<Known, "catalog" | "loggedUpTo">): KnownTables {
  return { catalog: catalog?.state ?? null, loggedUpTo };
}

function begunWith(replica: Replica, cache: BaseCache, known: Known): BegunSync {
  const { readVersion, isSameCatalog, written, catalog, loggedUpTo, sentAt, hasRecentWrites = true } = known;
  // Little loses if nothing has written to the base for some minutes.
  const ageMs = hasRecentWrites ? SWEEP_AGE_MS : QUIET_SWEEP_AGE_MS;
  const readVersions = new ReadVersionSource(() => takeReadVersion(replica), ageMs);
  readVersions.offer(readVersion, sentAt);
  for (const id of written) loggedUpTo.delete(id);
  const isKnown = isSameCatalog && cache.catalog === catalog;
  return { catalog: isKnown ? catalog?.catalog : undefined, unwritten: loggedUpTo, readVersions };
}
