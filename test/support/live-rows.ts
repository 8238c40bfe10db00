/**
 * Writes the rows of live mode and of calls that workers would have recorded, for tests of the pages that show them.
 */
import type { Db } from "../../core/context";
import type { Base } from "../../core/control/bases";
import { quotaKeyOf } from "../../core/control/budgets";

/** Seconds ago, or null. */
type SecondsAgo = number | null;

export interface FeedNoted {
  state?: "making" | "on" | "refused" | "failing";
  reason?: string;
  hasNotifications?: boolean;
  readAgo?: SecondsAgo;
  /** From one read to the next one due, s. */
  pace?: number;
  changedAgo?: SecondsAgo;
  waiting?: number;
  waitingAgo?: SecondsAgo;
  missed?: number;
  comparedAgo?: SecondsAgo;
  staleAgo?: SecondsAgo;
  gapAgo?: SecondsAgo;
  /** Since when there is no feed; it is tried again in a minute. */
  offAgo?: SecondsAgo;
}

/** Records a healthy feed that is polled once a second, unless the options differ. */
export async function recordFeed(db: Db, base: Pick<Base, "id">, feed: FeedNoted = {}): Promise<void> {
  const { state = "on", reason = "", hasNotifications = false, pace = 1, waiting = 0, missed = 0 } = feed;
  const ago = (seconds: SecondsAgo | undefined, usual: SecondsAgo = null) =>
    db`now() - make_interval(secs => ${seconds === undefined ? usual : seconds})`;
  const readAt = ago(feed.readAgo, 0);
  await db`delete from live_feeds where base_id = ${base.id}`;
  await db`
    insert into live_feeds (base_id, state, reason, notification_url, notified_at, read_at, due_at, changed_at,
      waiting, waiting_since, missed, compared_at, drifted_since, gap_since, off_since, retry_at)
    values (${base.id}, ${state}, ${reason}, ${hasNotifications ? "https://console.example.com/hooks" : null},
      ${hasNotifications ? ago(60) : null}, ${readAt}, ${readAt} + make_interval(secs => ${pace}),
      ${ago(feed.changedAgo, 12)}, ${waiting}, ${ago(feed.waitingAgo)}, ${missed}, ${ago(feed.comparedAgo, 40)},
      ${ago(feed.staleAgo)}, ${ago(feed.gapAgo)}, ${ago(feed.offAgo)},
      case when ${feed.offAgo != null} then now() + interval '1 minute' end)`;
}

/** Records calls of this month. */
export async function recordCalls(
  db: Db,
  base: Pick<Base, "platform" | "sourceBaseId">,
  calls: { client: number; byKind: Record<string, number> },
): Promise<void> {
  const key = quotaKeyOf(base);
  const month = db`date_trunc('month', now() at time zone 'UTC')::date`;
  const sync = Object.values(calls.byKind).reduce((sum, one) => sum + one, 0);
  await db`
    insert into quota_calls (key, month, sync, client) values (${key}, ${month}, ${sync}, ${calls.client})
    on conflict (key, month) do update set sync = excluded.sync, client = excluded.client`;
  for (const [kind, count] of Object.entries(calls.byKind)) {
    await db`
      insert into quota_kinds (key, month, kind, calls) values (${key}, ${month}, ${kind}, ${count})
      on conflict (key, month, kind) do update set calls = excluded.calls`;
  }
}
