/** Keeps a replica's journal short: nobody needs notes that are older than every image on its way. */
import { isBasetideError } from "../errors";
import { type Replica, takeTicket, trimJournal } from "../replica";
import type { BaseMemory } from "./memory";

/** Notes are kept for this long: images that were asked for earlier are refused and asked for again. */
const JOURNAL_KEPT_MS = 120_000;
const TRIM_INTERVAL_MS = 30_000;
/** A ticket may have been taken so long before it is first used. */
const TICKET_AGE_MS = 2000;

/**
 * Remembers a ticket of now, and forgets the journal up to one of two minutes ago. A journal that others hold is trimmed
 * the next time.
 *
 * @param readAt since then (performance.now()) the notes of all tables have been read, and every reading that is
 *   still under way has begun
 */
export async function trimOldJournal(replica: Replica, memory: BaseMemory, readAt: number): Promise<void> {
  const now = performance.now();
  const points = memory.trimPoints;
  if (points.length > 0 && now - points.at(-1)!.at < TRIM_INTERVAL_MS) return;
  points.push({ at: now, ticket: await takeTicket(replica) });
  const oldest = Math.min(now - JOURNAL_KEPT_MS, readAt - TICKET_AGE_MS);
  const old = points.findLastIndex(({ at }) => at < oldest);
  if (old === -1) return;
  // They could not be brought up to date without it.
  memory.builds.clear();
  try {
    await trimJournal(replica, memory.epoch, points[old]!.ticket);
    points.splice(0, old + 1);
  } catch (error) {
    if (!isBasetideError(error, "replica_busy")) throw error;
  }
}
