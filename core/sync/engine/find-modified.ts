/**
 * A look at one table in rapid mode: asks only for the records that were modified since the last look.
 *
 * I1, I2. What is found is applied through read versions, as the pages of a sweep are.
 * I3. A look sees creates and changes of a record's own cells. It misses deletes, computed cells, renamed choices,
 * AI texts and whatever the source's filter or its clock hides from it: the sweep beside is the authority.
 *
 * A sweep of the same table may be under way. What a look writes counts as seen by it, so that it is neither taken
 * for gone nor forgotten.
 */

import type { Base } from "../../control/bases";
import { agoMs } from "../../postgres";
import type { SourceTable } from "../../source";
import type { TableCache } from "../state";
import { fingerprintIn } from "../state";
import { readTable, restarting } from "./reader";
import { applyRecords, expectLogged, type Sweep } from "./sweep";

/**
 * How far a look goes back behind the one before it, ms. Times of records are whole seconds, and the clocks that date
 * them and the source's answers are two.
 */
const OVERLAP_MS = 10_000;
/** The same for the first look, which goes back to a sync of another worker's; the times of both went over the network. */
const FIRST_OVERLAP_MS = 60_000;
/** How often a look starts over when the source loses its place. */
const MAX_STARTS = 5;

export interface ChangePoll extends Pick<Sweep, "replica" | "reader" | "epoch" | "schemaTracker" | "cache"> {
  base: Pick<Base, "sync" | "clockAheadMs">;
  /** The platform's filter. */
  modifiedSince: (sinceMs: number) => string;
  /** From when on (ms, the source's clock); from the last look on unless given, and such a look is not the last one. */
  sinceMs?: number;
}

export interface PollResult {
  /** When the source was asked (performance.now()): what it had by then has been found. */
  askedAt: number;
  /** Records that the source gave. */
  seen: number;
  inserted: number;
  updated: number;
}

/** Brings the table up to date with what was created or modified since it was last looked at. */
export function pollForChanges(
  poll: ChangePoll,
  source: SourceTable,
  table: TableCache,
): Promise<PollResult> {
  return restarting(MAX_STARTS, () => pollOnce(poll, source, table));
}

async function pollOnce(poll: ChangePoll, source: SourceTable, table: TableCache): Promise<PollResult> {
  const { replica, reader, cache } = poll;
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
    for (const id of changed.keys()) fingerprints.see(id, 0n);
    found.seen += page.size;
    found.inserted += applied.inserted;
    found.updated += applied.updated;
  }
  if (poll.sinceMs === undefined) cache.polledUntil.set(source.id, until);
  return found;
}

/** What others wrote since the recent-writes log was last read is compared in SQL, and counts as seen by a sweep. */
async function expectOthers(replica: ChangePoll["replica"], table: TableCache): Promise<void> {
  for (const entry of await expectLogged(replica, table)) {
    if (!entry.isGone) table.fingerprints.see(entry.recordId, 0n);
  }
}

/** From when on (ms, the source's clock) changes of the table may not be in the replica yet. */
function lastPollMs({ cache, base }: ChangePoll, tableId: string): number {
  const until = cache.polledUntil.get(tableId);
  if (until !== undefined) return until - OVERLAP_MS;
  const { sync } = base;
  const now = cache.sourceClock.now();
  if (!sync || now === undefined) throw new Error("a look needs a sync before it and the source's clock");
  return now - agoMs(base, sync.startedAt) - FIRST_OVERLAP_MS;
}
