/**
 * Keeps a replica's recent-writes log short: entries go once they are older than every image on its way, and once a schema
 * check has shown which of them were written by names that had moved.
 */
import { isBasetideError } from "../../errors";
import { type Replica, takeTicket, trimJournal, writesSince } from "../../replica";
import { type BaseMemory, requestLook } from "../state";

/** Notes are kept for this long: images that were asked for earlier are refused and asked for again. */
const JOURNAL_KEPT_MS = 120_000;
const TRIM_INTERVAL_MS = 30_000;
/** A ticket may have been taken so long before it is first used. */
const TICKET_AGE_MS = 2000;
/**
 * Clients' writes of which no schema check has judged the names are kept for so long, until a check is requested for them.
 * In live mode checks are hours apart while the feed tells of no change: the feed may miss one, or be read late.
 */
const UNJUDGED_MS = 10 * 60_000;

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
  try {
    const judged = await judgedPoint(replica, memory, old);
    if (judged < old && points[judged + 1]!.at < now - UNJUDGED_MS) requestLook(memory, new Date());
    if (judged === -1) return;
    // They could not be brought up to date without it.
    memory.builds.clear();
    await trimJournal(replica, memory.epoch, points[judged]!.ticket);
    memory.trimmedTo = points[judged]!;
    points.splice(0, judged + 1);
  } catch (error) {
    if (!isBasetideError(error, "replica_busy")) throw error;
  }
}

/** The last point up to `old` before which nothing was written by names that no schema check has judged; -1: none. */
async function judgedPoint(replica: Replica, memory: BaseMemory, old: number): Promise<number> {
  const { namesSeenAt, trimPoints: points } = memory;
  if (points[old]!.at < namesSeenAt) return old;
  const seen = points.findLastIndex(({ at }, index) => index < old && at < namesSeenAt);
  const writes = await writesSince(replica, points[seen]?.ticket ?? 0);
  return writes.some(({ stamp }) => stamp <= points[old]!.ticket) ? seen : old;
}
