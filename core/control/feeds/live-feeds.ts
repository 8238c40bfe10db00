/**
 * What is kept of a base's feed of changes: the source's webhook, how far it has been read, and how well it does.
 *
 * G1. A webhook and the gap before it are noted in one statement: there is never a webhook that nobody knows to have begun
 *     only then.
 * G2. What is noted of a webhook is noted only while that webhook is the base's: whoever still holds an older one changes
 *     nothing.
 */
import type { TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { serverTime } from "../../postgres";

/** Notifications are passed on to workers here; the payload is the base's id. */
export const NOTIFICATION_CHANNEL = "basetide_notification";

/** A source that has refused is asked again after so long, or at once with another key. */
const REFUSED_RETRY = "1 hour";

export interface SavedFeed {
  state: "making" | "on" | "refused";
  /** Refused, and not to be tried again yet. */
  isResting: boolean;
  webhookId: string | null;
  encryptedSecret: string | null;
  /** Of the webhook: what is before it is durable in the replica. */
  cursor: number;
  notificationUrl: string | null;
  /** On the source's clock, ms since 1970. */
  expiresMs: number | undefined;
  /** By the server's clock; its age by nobody's. */
  gapSince: Date | null;
  gapMsAgo: number | null;
  /** Are its notifications to be waited for? */
  hasNotifications: boolean;
  /** Has it been notified since it was last read? */
  isNotified: boolean;
  /** How long ago the source was asked how the webhook is; Infinity: never. */
  checkedMsAgo: number;
}

export interface NewFeedWebhook {
  id: string;
  encryptedSecret: string;
  notificationUrl: string | null;
  expiresMs: number | undefined;
}

export async function loadFeed(db: Db, baseId: string): Promise<SavedFeed | undefined> {
  const [row] = await db<
    (Omit<SavedFeed, "cursor" | "expiresMs"> & { cursor: string; expiresAt: Date | null })[]
  >`
    select state, webhook_id as "webhookId", encrypted_secret as "encryptedSecret", cursor,
      notification_url as "notificationUrl", expires_at as "expiresAt", gap_since as "gapSince",
      (extract(epoch from clock_timestamp() - gap_since) * 1000)::double precision as "gapMsAgo",
      ${hasNotifications(db)} as "hasNotifications",
      coalesce(state = 'refused' and refused_at > now() - ${REFUSED_RETRY}::interval, false) as "isResting",
      coalesce(notified_at > read_at, notified_at is not null) as "isNotified",
      coalesce(extract(epoch from now() - checked_at) * 1000, 'Infinity')::double precision as "checkedMsAgo"
    from live_feeds as f where base_id = ${baseId}`;
  if (!row) return undefined;
  const { cursor, expiresAt, ...rest } = row;
  return { ...rest, cursor: Number(cursor), expiresMs: expiresAt?.getTime() };
}

/**
 * Puts a new webhook in the place of `replaced`, to be read from its beginning (G1).
 *
 * @returns the gap that it begins with; null, changing nothing, when the base is not to be live any more or has another
 *   webhook by now
 */
export async function saveWebhook(
  db: Db,
  baseId: string,
  replaced: string | null,
  webhook: NewFeedWebhook,
): Promise<Date | null> {
  // A lock: who switches live mode off and removes the webhook after it must find this one.
  const [kept] = await db<{ gapSince: Date }[]>`
    insert into live_feeds as f
      (base_id, state, webhook_id, encrypted_secret, cursor, notification_url, expires_at, gap_since, checked_at)
    select b.id, 'on', ${webhook.id}, ${webhook.encryptedSecret}, 1, ${webhook.notificationUrl}, ${dateOf(webhook.expiresMs)},
      ${gapNow(db)}, now()
    from bases as b where b.id = ${baseId} and b.live and b.state <> 'deleting' for share
    on conflict (base_id) do update
      set state = 'on', reason = '', refused_at = null, webhook_id = excluded.webhook_id,
        encrypted_secret = excluded.encrypted_secret, cursor = 1, notification_url = excluded.notification_url,
        expires_at = excluded.expires_at, gap_since = excluded.gap_since, checked_at = now(),
        notified_at = case when f.notification_url = excluded.notification_url then f.notified_at end,
        missed_notification_at = case when f.notification_url = excluded.notification_url then f.missed_notification_at end
      where f.webhook_id is not distinct from ${replaced}
    returning gap_since as "gapSince"`;
  return kept?.gapSince ?? null;
}

/** The source says that the webhook is well. */
export async function recordWebhookHealthy(
  db: Db,
  baseId: string,
  webhookId: string,
  expiresMs: number | undefined,
): Promise<void> {
  await db`
    update live_feeds set state = 'on', reason = '', refused_at = null, checked_at = now(),
      expires_at = ${dateOf(expiresMs)}
    where base_id = ${baseId} and webhook_id = ${webhookId}`;
}

/** The source does not let the key have a feed: why, in words for people. */
export async function recordRefused(db: Db, baseId: string, reason: string): Promise<void> {
  await db`
    insert into live_feeds (base_id, state, reason, refused_at)
    select id, 'refused', ${reason}, now() from bases where id = ${baseId} and live for share
    on conflict (base_id) do update set state = 'refused', reason = excluded.reason, refused_at = now()`;
}

/** Changes of before now are not in the feed. @returns since when; null when the base has another webhook by now (G2) */
export async function recordFeedGap(db: Db, baseId: string, webhookId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} and webhook_id = ${webhookId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** The same for whatever webhook the base has: its replica is another one from now on. */
export async function recordFeedGapOfBase(db: Db | TransactionSql, baseId: string): Promise<void> {
  await db`update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)}) where base_id = ${baseId}`;
}

/** A sweep has found what was missing before `gapSince`; null: nothing was. What somebody has noted since stays. */
export async function closeFeedGap(db: Db, baseId: string, gapSince: Date | null): Promise<void> {
  const isOpen = db`coalesce(gap_since > ${gapSince}::timestamptz, gap_since is not null)`;
  await db`
    update live_feeds set
      gap_since = case when ${isOpen} then gap_since end,
      drifted_since = case when ${isOpen} then drifted_since end
    where base_id = ${baseId} and (gap_since is not null or drifted_since is not null)`;
}

export async function saveCursor(db: Db, baseId: string, webhookId: string, cursor: number): Promise<void> {
  await db`
    update live_feeds set cursor = greatest(cursor, ${cursor})
    where base_id = ${baseId} and webhook_id = ${webhookId}`;
}

export interface ReadFacts {
  /** How long ago the last read that succeeded began, ms. */
  readMsAgo: number;
  /** Until it is to be read again, ms. */
  dueInMs: number;
  waiting: number;
  changedAt: Date | null;
}

export async function recordRead(db: Db, baseId: string, facts: ReadFacts): Promise<void> {
  await db`
    update live_feeds set
      read_at = now() - ${facts.readMsAgo} * interval '1 ms',
      due_at = now() + ${facts.dueInMs} * interval '1 ms',
      waiting = ${facts.waiting},
      waiting_since = case when ${facts.waiting}::integer > 0 then coalesce(waiting_since, now()) end,
      changed_at = coalesce(${facts.changedAt && serverTime(db, facts.changedAt)}, changed_at)
    where base_id = ${baseId}`;
}

/** A change was found that no notification had told of. */
export async function recordMissedNotification(db: Db, baseId: string): Promise<void> {
  await db`update live_feeds set missed_notification_at = now() where base_id = ${baseId}`;
}

/** Counts records that only a sweep found changed. */
export async function addMissedChanges(db: Db, baseId: string, count: number): Promise<void> {
  await db`
    update live_feeds set missed = missed + ${count}, missed_at = now() where base_id = ${baseId}`;
}

/** SQL was compared with the source, and shows what it should as far as the comparison went. */
export async function recordInSync(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set compared_at = now(), drifted_since = case when gap_since is not null then drifted_since end
    where base_id = ${baseId}`;
}

/** SQL was compared with the source, and lags behind: the feed told nothing of what changed before now. */
export async function recordDrift(db: Db, baseId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set compared_at = now(), drifted_since = coalesce(drifted_since, now()),
      gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** A gap is known by its time, and a Date holds no more than ms. */
function gapNow(db: Db | TransactionSql) {
  return db`date_trunc('milliseconds', clock_timestamp())`;
}

/** Whose notifications the webhook's are, or undefined where the base has none: what they are signed with. */
export async function webhookSecret(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
): Promise<string | undefined> {
  const [row] = await db<{ encrypted_secret: string | null }[]>`
    select encrypted_secret from live_feeds where base_id = ${baseId}`;
  return row?.encrypted_secret
    ? secrets.decrypt(row.encrypted_secret, webhookSecretContext(baseId))
    : undefined;
}

/** The source says that there is something new: wakes the worker that has the base. */
export async function recordNotification(db: Db, baseId: string): Promise<void> {
  await db`
    with notified as (update live_feeds set notified_at = now() where base_id = ${baseId} returning base_id)
    select pg_notify(${NOTIFICATION_CHANNEL}, base_id) from notified`;
}

/** The webhook is none of the base's any more, or cannot be seen: another is to be made. */
export async function dropWebhook(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set webhook_id = null, encrypted_secret = null, state = 'making', reason = '', refused_at = null
    where base_id = ${baseId}`;
}

/** A key that was refused is not the key any more: it is to be tried at once. */
export async function forgetRefusal(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set state = 'making', reason = '', refused_at = null
    where base_id = ${baseId} and state = 'refused'`;
}

export async function forgetFeed(db: Db, baseId: string): Promise<void> {
  await db`delete from live_feeds where base_id = ${baseId}`;
}

/** Where the secret is kept, for the box that encrypts it. */
export function webhookSecretContext(baseId: string): string {
  return `live_feeds.secret:${baseId}`;
}

function dateOf(ms: number | undefined): Date | null {
  return ms === undefined ? null : new Date(ms);
}

/**
 * A condition on the row `f` of live_feeds: notifications have an address, none was missing since the last one came, and one
 * did come, of this feed or, which also shows that the console can be reached, of another.
 */
export function hasNotifications(db: Db): ReturnType<Db> {
  return db`(f.notification_url is not null
    and (f.missed_notification_at is null or coalesce(f.notified_at > f.missed_notification_at, false))
    and (f.notified_at is not null or exists (select from live_feeds as o where o.notified_at is not null)))`;
}
