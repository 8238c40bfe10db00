/**
 * Keeps a replica's recent-writes log short: entries go once they are older than every image on its way, and once a schema
 * check has shown which of them were written by names that had moved.
 */
import { isBasetideError } from "../../errors";
import { type Replica, takeReadVersion, trimRecentWrites, writesSince } from "../../replica";
import { type BaseCache, requestSchemaCheck } from "../state";

/** Notes are kept for this long: images that were asked for earlier are refused and asked for again. */
const LOG_KEPT_MS = 120_000;
const TRIM_INTERVAL_MS = 30_000;
/** A read version may have been taken so long before it is first used. */
const READ_VERSION_AGE_MS = 2000;
/**
 * Clients' writes of which no schema check has judged the names are kept for so long, until a check is requested for them.
 * In live mode checks are hours apart while the feed tells of no change: the feed may miss one, or be read late.
 */
const UNJUDGED_MS = 10 * 60_000;

/**
 * Remembers a read version of now, and forgets the recent-writes log up to one of two minutes ago. A recent-writes log that others hold is trimmed
 * the next time.
 *
 * @param readAt since then (performance.now()) the notes of all tables have been read, and every reading that is
 *   still under way has begun
 */
export async function trimOldRecentWrites(replica: Replica, cache: BaseCache, readAt: number): Promise<void> {
  const now = performance.now();
  const points = cache.trimPoints;
  if (points.length > 0 && now - points.at(-1)!.at < TRIM_INTERVAL_MS) return;
  points.push({ at: now, readVersion: await takeReadVersion(replica) });
  const oldest = Math.min(now - LOG_KEPT_MS, readAt - READ_VERSION_AGE_MS);
  const old = points.findLastIndex(({ at }) => at < oldest);
  if (old === -1) return;
  try {
    const judged = await judgedPoint(replica, cache, old);
    if (judged < old && points[judged + 1]!.at < now - UNJUDGED_MS) requestSchemaCheck(cache, new Date());
    if (judged === -1) return;
    // They could not be brought up to date without it.
    cache.builds.clear();
    await trimRecentWrites(replica, cache.epoch, points[judged]!.readVersion);
    cache.trimmedTo = points[judged]!;
    points.splice(0, judged + 1);
  } catch (error) {
    if (!isBasetideError(error, "replica_busy")) throw error;
  }
}

/** The last point up to `old` before which nothing was written by names that no schema check has judged; -1: none. */
async function judgedPoint(replica: Replica, cache: BaseCache, old: number): Promise<number> {
  const { namesSeenAt, trimPoints: points } = cache;
  if (points[old]!.at < namesSeenAt) return old;
  const seen = points.findLastIndex(({ at }, index) => index < old && at < namesSeenAt);
  const writes = await writesSince(replica, points[seen]?.readVersion ?? 0);
  return writes.some(({ appliedVersion }) => appliedVersion <= points[old]!.readVersion) ? seen : old;
}
