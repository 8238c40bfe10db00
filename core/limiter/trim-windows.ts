/** Clears away windows of keys that nobody has used for long: of paused bases, of bases that are gone. */
import type { Db } from "../context";

/** A window is a second; whoever asks after this long waits two seconds for the first reservation. */
const UNUSED_MS = 24 * 3600_000;

/**
 * Drops the windows of keys that were not used for a day; what they counted is kept.
 *
 * @returns how many there were
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
      // As every reservation of the key does.
      await tx`select pg_advisory_xact_lock(hashtextextended('quota:' || ${key}, 0))`;
      const { count } = await tx`
        with gone as (delete from quota_windows as w where w.key = ${key} and ${unused} returning w.*)
        select quota_count(key, counted_from, sync_calls, client_calls) from gone`;
      return count;
    });
  }
  return dropped;
}
