/** Whether a feed's pings are to be waited for, in SQL. */
import type { Db } from "../../context";

/**
 * A condition on the row `f` of live_feeds: pings have an address, none was missing since the last one came, and one
 * did come, of this feed or, which also shows that the console can be reached, of another.
 */
export function hasPings(db: Db): ReturnType<Db> {
  return db`(f.notification_url is not null
    and (f.unpinged_at is null or coalesce(f.pinged_at > f.unpinged_at, false))
    and (f.pinged_at is not null or exists (select from live_feeds as o where o.pinged_at is not null)))`;
}
