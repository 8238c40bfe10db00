/** Deletes the windows of keys without recent requests: of paused and deleted bases. */
import type { Db } from "../context";

/** A window is a second; after this time, the first request of a key waits two seconds for its reservation. */
const UNUSED_MS = 24 * 3600_000;

/**
 * Deletes the windows of keys without a request for a day; their counts are preserved.
 *
 * @returns the number of deleted windows
 */
export async function trimWindows(db: Db): Promise<number> {
  const unused = db`
    greatest(w.counted_from, w.client_at, w.reservations[cardinality(w.reservations)])
      < extract(epoch from now()) * 1000 - ${UNUSED_MS}
    and w.blocked_until <= extract(epoch from now()) * 1000`;
  const keys = await db<{ key: string }[]>`select w.key from quota_windows as w where ${unused}`;
  let dropped = 0;
  for (const { key } of keys) {
    dropped += await db.begin(async (tx) => {
      // The lock that every reservation of the key takes.
      await tx`select pg_advisory_xact_lock(hashtextextended('quota:' || ${key}, 0))`;
      const { count } = await tx`
        with gone as (delete from quota_windows as w where w.key = ${key} and ${unused} returning w.*)
        select quota_count(key, counted_from, sync_calls, client_calls) from gone`;
      return count;
    });
  }
  return dropped;
}
