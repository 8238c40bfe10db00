/**
 * Polls one table in rapid mode: asks only for the records that were modified since the previous poll.
 *
 * I1, I2. Records are applied with read versions, like the pages of a sweep.
 * I3. A poll sees creates and changes of a record's own cells. It misses deletes, computed cells, renamed choices, AI
 * texts and everything that the source's filter or clock hides from it: the background sweep is the authority.
 *
 * A sweep of the same table may be running. Records that a poll writes count as seen by the sweep, so that it neither
 * deletes nor forgets them.
 */

import { agoMs } from "../../postgres";
import type { SourceTable, UnreadableRecord } from "../../source";
import type { SyncedBase } from "../host";
import { RECENT_MS } from "../pacing";
import type { TableCache } from "../state";
import { fingerprintIn } from "../state";
import { readTable, restarting } from "./reader";
import { expectLogged, type Sweep } from "./sweep";
import { reportRecords, seeUnreadable } from "./unreadable";
import { applyRecords } from "./write-records";

/**
 * How far a poll goes back before the start of the previous one, ms. Modification times of records are whole seconds,
 * and they come from another clock than the times of the source's answers.
 */
export const OVERLAP_MS = 10_000;
/**
 * The same where times of two clocks are compared, or times that crossed the network: the first poll goes back to a sync
 * that another worker may have run.
 */
export const CLOCKS_OVERLAP_MS = 60_000;

interface ChangePoll extends Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache"> {
  base: Pick<SyncedBase, "sync" | "clockAheadMs">;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /**
   * Start of the polled period (ms, the source's clock). Defaults to the previous poll; a poll with an explicit start
   * does not count as the previous one of the next.
   */
  sinceMs?: number;
}

export interface PollResult {
  /** When the source was asked (performance.now()): changes that it had by then have been found. */
  askedAt: number;
  /** Records that the source returned. */
  seen: number;
  inserted: number;
  updated: number;
}

/** Brings the table up to date with records that were created or modified since the previous poll. */
export function pollForChanges(
  poll: ChangePoll,
  source: SourceTable,
  table: TableCache,
): Promise<PollResult> {
  return restarting(() => pollOnce(poll, source, table));
}

async function pollOnce(poll: ChangePoll, source: SourceTable, table: TableCache): Promise<PollResult> {
  const { replica, reader, cache } = poll;
  await poll.schemaTracker.ownTable(source.id);
  const { fingerprints } = table;
  const found: PollResult = { askedAt: 0, seen: 0, inserted: 0, updated: 0 };
  const since = poll.sinceMs ?? lastPollMs(poll, source.id);
  let until = since;
  const pages = readTable(reader, source, {
    filter: poll.modifiedSince(since),
    onAsk: () => {
      found.askedAt = performance.now();
      until = cache.sourceClock.now(found.askedAt) ?? since;
    },
  });
  let isFirst = true;
  const unreadable: UnreadableRecord[] = [];
  for await (const versioned of pages) {
    const { page } = versioned;
    if (isFirst) await expectOthers(replica, table);
    isFirst = false;
    const changed = new Map<string, number>();
    for (let index = 0; index < page.size; index++) {
      const id = page.id(index);
      if (!fingerprints.isKnown(id, fingerprintIn(table, page, index))) changed.set(id, index);
    }
    const applied = await applyRecords(poll, table, versioned, [...changed.values()]);
    if (changed.size > 0) cache.changedTables.add(source.id);
    for (const id of changed.keys()) fingerprints.see(id, 0n);
    unreadable.push(...seeUnreadable(table, page));
    found.seen += page.size;
    found.inserted += applied.inserted;
    found.updated += applied.updated;
  }
  await reportRecords(poll, table, unreadable, false);
  // Those that could not be read are asked for again, for a while; after that, the next sweep finds them.
  const isComplete = unreadable.length === 0 || until - since > RECENT_MS;
  if (poll.sinceMs === undefined && isComplete) cache.polledUntil.set(source.id, until);
  return found;
}

/**
 * Marks records that other processes wrote since the recent-writes log was last read: they are compared in SQL, and
 * count as seen by a sweep.
 */
async function expectOthers(replica: ChangePoll["replica"], table: TableCache): Promise<void> {
  for (const entry of await expectLogged(replica, table)) {
    if (!entry.isGone) table.fingerprints.see(entry.recordId, 0n);
  }
}

/** Returns the time (ms, the source's clock) since which changes of the table may be missing from the replica. */
function lastPollMs({ cache, base }: ChangePoll, tableId: string): number {
  const until = cache.polledUntil.get(tableId);
  if (until !== undefined) return until - OVERLAP_MS;
  const { sync } = base;
  const now = cache.sourceClock.now();
  if (!sync || now === undefined) throw new Error("a cycle needs a previous sync and Airtable's clock");
  return now - agoMs(base, sync.startedAt) - CLOCKS_OVERLAP_MS;
}
