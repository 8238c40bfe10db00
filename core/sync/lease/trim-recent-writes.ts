/**
 * Keeps a replica's recent-writes log short. An entry is removed once it is older than every image that is still being
 * read, and once a schema check has shown whether it was written by a name that had moved.
 */
import { isBasetideError } from "../../errors";
import {
  cellsNotShown,
  forgetCells,
  type Replica,
  takeReadVersion,
  trimRecentWrites,
  writesSince,
} from "../../replica";
import { TRIM_INTERVAL_MS } from "../modes/live";
import { RECENT_MS, SHORTEST_MS } from "../pacing";
import { type BaseCache, QUIET_SWEEP_AGE_MS } from "../state";

/** What a statement that was sent at `sentAt` (performance.now()) found. */
interface LogState {
  sentAt: number;
  readVersion: number;
  hasRecentWrites: boolean;
}

/**
 * Removes cells from the log that the selection does not show. Stores a read version of the current time, and trims the
 * log up to a read version of two minutes ago. If another transaction holds the log, it is trimmed the next time.
 *
 * @param readAt since this time (performance.now()) the log entries of all tables have been read, and every read that
 *   is still running has started
 * @param latest the log's latest known state: while it is empty, nothing is sent
 */
export async function trimOldRecentWrites(
  replica: Replica,
  cache: BaseCache,
  readAt: number,
  latest?: LogState,
): Promise<void> {
  const now = performance.now();
  const points = cache.trimPoints;
  if (points.length > 0 && now - points.at(-1)!.at < TRIM_INTERVAL_MS) return;
  points.push(
    latest
      ? { at: latest.sentAt, readVersion: latest.readVersion }
      : { at: now, readVersion: await takeReadVersion(replica) },
  );
  const isEmpty = latest?.hasRecentWrites === false;
  if (!isEmpty && cache.schema)
    for (const cells of cellsNotShown(cache.schema)) await forgetCells(replica, cache.epoch, cells);
  // A read version may be that old when it is first used, with a second to spare. An image that was requested earlier is
  // rejected, and its record is read again.
  const oldest = Math.min(now - 2 * QUIET_SWEEP_AGE_MS, readAt - QUIET_SWEEP_AGE_MS - SHORTEST_MS);
  const old = points.findLastIndex(({ at }) => at < oldest);
  if (old === -1) return;
  try {
    const judged = isEmpty ? old : await judgedPoint(replica, cache, old);
    // In live mode, checks are hours apart while the feed reports no schema change: it may miss one, or be read late.
    if (judged < old && points[judged + 1]!.at < now - RECENT_MS)
      cache.schemaSeenAt = Number.NEGATIVE_INFINITY;
    if (judged === -1) return;
    if (!isEmpty) {
      // The builds could not catch up without the trimmed entries, nor could tables that have not been used yet.
      cache.builds.clear();
      cache.handedOver.clear();
      await trimRecentWrites(replica, cache.epoch, points[judged]!.readVersion);
    }
    cache.trimmedTo = points[judged]!;
    points.splice(0, judged + 1);
  } catch (error) {
    if (!isBasetideError(error, "replica_busy")) throw error;
  }
}

/**
 * Returns the index of the last point up to `old` before which every write used names that a schema check has
 * verified; -1 if there is none.
 */
async function judgedPoint(replica: Replica, cache: BaseCache, old: number): Promise<number> {
  const { namesSeenAt, trimPoints: points } = cache;
  if (points[old]!.at < namesSeenAt) return old;
  const seen = points.findLastIndex(({ at }, index) => index < old && at < namesSeenAt);
  const writes = await writesSince(replica, points[seen]?.readVersion ?? 0);
  return writes.some(({ appliedVersion }) => appliedVersion <= points[old]!.readVersion) ? seen : old;
}
