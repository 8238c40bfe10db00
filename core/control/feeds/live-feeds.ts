/**
 * The stored state of a base's feed of changes: the source's webhook, how far it was read, and its health.
 *
 * G1. A webhook and the feed gap before it are recorded in one statement, so that a new webhook is never taken for
 * one that covers earlier changes.
 *
 * G2. The state of a webhook is recorded only while that webhook is the base's: a process with an older one changes
 * nothing.
 */
import type { TransactionSql } from "postgres";
import { SharedLookup } from "../../async";
import type { Context, Db } from "../../context";
import { cleanText, serverTime } from "../../postgres";
import type { NotificationState, ReadFacts, SavedFeed } from "../../sync/host";

/** Postgres channel that passes notifications on to workers; the payload is the base's id, or `ADDRESS_CHANGED`. */
export const NOTIFICATION_CHANNEL = "basetide_notification";
/** What is known of an address has changed. */
export const ADDRESS_CHANGED = "address";

/** How long after a refusal the source is asked again; with another key it is asked at once. */
const REFUSED_RETRY = "1 hour";

interface StoredFeed extends Omit<SavedFeed, "isSecretReadable"> {
  encryptedSecret: string | null;
}

interface StoredWebhook extends Pick<StoredFeed, "notificationUrl" | "expiresMs"> {
  id: string;
  encryptedSecret: string;
}

export async function loadFeed(db: Db, baseId: string): Promise<StoredFeed | undefined> {
  const [row] = await db<
    (Omit<StoredFeed, "cursor" | "expiresMs"> & { cursor: string; expiresAt: Date | null })[]
  >`
    select state, webhook_id as "webhookId", encrypted_secret as "encryptedSecret", cursor,
      notification_url as "notificationUrl", expires_at as "expiresAt", gap_since as "gapSince",
      (extract(epoch from clock_timestamp() - gap_since) * 1000)::double precision as "gapMsAgo",
      ${hasMissedNotification(db)} as "hasMissedNotification",
      coalesce(state = 'refused' and refused_at > now() - ${REFUSED_RETRY}::interval, false) as "isResting",
      coalesce(notified_at > read_at, notified_at is not null) as "isNotified",
      coalesce(extract(epoch from now() - checked_at) * 1000, 'Infinity')::double precision as "checkedMsAgo"
    from live_feeds as f where base_id = ${baseId}`;
  if (!row) return undefined;
  const { cursor, expiresAt, ...rest } = row;
  return { ...rest, cursor: Number(cursor), expiresMs: expiresAt?.getTime() };
}

/**
 * Replaces the webhook `replaced` by a new one, which is read from its beginning (G1).
 *
 * @returns the gap that it begins with; null, without a change, if the base no longer uses live mode or has another
 *   webhook by now
 */
export async function saveWebhook(
  db: Db,
  baseId: string,
  replaced: string | null,
  webhook: StoredWebhook,
): Promise<Date | null> {
  // The lock makes sure that a process that switches live mode off, and then removes the webhook, finds this one.
  const [kept] = await db<{ gapSince: Date }[]>`
    insert into live_feeds as f
      (base_id, state, webhook_id, encrypted_secret, cursor, notification_url, expires_at, gap_since, checked_at)
    select b.id, 'on', ${webhook.id}, ${webhook.encryptedSecret}, 1, ${webhook.notificationUrl}, ${dateOf(webhook.expiresMs)},
      ${gapNow(db)}, now()
    from bases as b where b.id = ${baseId} and b.live and b.state <> 'deleting' for share
    on conflict (base_id) do update
      set state = 'on', refused_at = null, ${stillFailing(db)}, webhook_id = excluded.webhook_id,
        encrypted_secret = excluded.encrypted_secret, cursor = 1, notification_url = excluded.notification_url,
        expires_at = excluded.expires_at, gap_since = excluded.gap_since, checked_at = now(),
        notified_at = case when f.notification_url = excluded.notification_url then f.notified_at end,
        missed_notification_at = case when f.notification_url = excluded.notification_url then f.missed_notification_at end
      where f.webhook_id is not distinct from ${replaced}
    returning gap_since as "gapSince"`;
  return kept?.gapSince ?? null;
}

/** Records that the source reports the webhook as healthy. Only a read shows that the feed works. */
export async function recordWebhookHealthy(
  db: Db,
  baseId: string,
  webhookId: string,
  expiresMs: number | undefined,
): Promise<void> {
  await db`
    update live_feeds as f set state = 'on', refused_at = null, ${stillFailing(db)}, checked_at = now(),
      expires_at = ${dateOf(expiresMs)}
    where base_id = ${baseId} and webhook_id = ${webhookId}`;
}

/** Records that the source refuses a feed to the key, with the reason as text for people. */
export async function recordRefused(db: Db, baseId: string, reason: string): Promise<void> {
  await db`
    insert into live_feeds (base_id, state, reason, refused_at, off_since, retry_at)
    select id, 'refused', ${reason}, now(), now(), now() + ${REFUSED_RETRY}::interval
    from bases where id = ${baseId} and live for share
    on conflict (base_id) do update set state = 'refused', reason = excluded.reason, refused_at = now(),
      off_since = coalesce(live_feeds.off_since, now()), retry_at = excluded.retry_at`;
}

/** Records why the feed cannot be read at the moment. It is off until a read of it succeeds. */
export async function recordFailing(
  db: Db,
  baseId: string,
  reason: string,
  retryInMs: number,
): Promise<void> {
  await db`
    insert into live_feeds (base_id, state, reason, off_since, retry_at)
    select id, 'failing', ${cleanText(reason)}, now(), now() + ${retryInMs} * interval '1 ms'
    from bases where id = ${baseId} and live for share
    on conflict (base_id) do update set state = 'failing', reason = excluded.reason, refused_at = null,
      off_since = coalesce(live_feeds.off_since, now()), retry_at = excluded.retry_at`;
}

/**
 * Records that the feed lacks the changes before now.
 *
 * @returns the time of the gap; null if the base has another webhook by now (G2)
 */
export async function recordFeedGap(db: Db, baseId: string, webhookId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} and webhook_id = ${webhookId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** Records the same for the base's current webhook, whichever it is, because its replica was replaced. */
export async function recordFeedGapOfBase(db: Db | TransactionSql, baseId: string): Promise<void> {
  await db`update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)}) where base_id = ${baseId}`;
}

/** Closes the gap that began at `gapSince`, or null for none, after a sweep. A gap that was recorded since stays. */
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

export async function recordRead(db: Db, baseId: string, facts: ReadFacts): Promise<void> {
  const isOff = db`off_since > now() - ${facts.readMsAgo} * interval '1 ms'`;
  await db`
    update live_feeds set
      read_at = now() - ${facts.readMsAgo} * interval '1 ms',
      due_at = now() + ${facts.dueInMs} * interval '1 ms',
      off_since = case when ${isOff} then off_since end,
      retry_at = case when ${isOff} then retry_at end,
      reason = case when ${isOff} then reason else '' end,
      waiting = ${facts.waiting},
      waiting_since = case when ${facts.waiting}::integer > 0 then coalesce(waiting_since, now()) end,
      changed_at = coalesce(${facts.changedAt && serverTime(db, facts.changedAt)}, changed_at),
      missed = missed + ${facts.missed},
      missed_at = case when ${facts.missed}::integer > 0 then now() else missed_at end
    where base_id = ${baseId}`;
}

/**
 * Records that a change was found without a notification. If none has ever arrived at the address, it cannot be reached,
 * and all workers are told so. Otherwise this says nothing about other bases: they may be those of other accounts.
 */
export async function recordMissedNotification(db: Db, address: string, baseId: string): Promise<void> {
  await db`
    with missed as (update live_feeds set missed_notification_at = now() where base_id = ${baseId} returning base_id),
      lost as (
        insert into notification_addresses (address, is_proven) select ${address}, false from missed
        on conflict do nothing returning address)
    select pg_notify(${NOTIFICATION_CHANNEL}, ${ADDRESS_CHANGED}) from lost`;
}

export async function loadAddressState(db: Db, address: string): Promise<NotificationState> {
  const [row] = await db<{ isProven: boolean }[]>`
    select is_proven as "isProven" from notification_addresses where address = ${address}`;
  if (!row) return "expected";
  return row.isProven ? "proven" : "none";
}

/** Records that a comparison of SQL with the source found no difference, as far as it went. */
export async function recordInSync(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set compared_at = now(), drifted_since = case when gap_since is not null then drifted_since end
    where base_id = ${baseId}`;
}

/**
 * Records that a comparison found SQL behind the source: the feed lacks changes before now.
 *
 * @returns the time of the gap
 */
export async function recordDrift(db: Db, baseId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set compared_at = now(), drifted_since = coalesce(drifted_since, now()),
      gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** A refusal ends with a webhook; a failing feed `f` is off until it is read (`recordRead`). */
function stillFailing(db: Db) {
  return db`
    reason = case when f.state = 'refused' then '' else f.reason end,
    off_since = case when f.state <> 'refused' then f.off_since end,
    retry_at = case when f.state <> 'refused' then f.retry_at end`;
}

/** The current time without microseconds: a gap is identified by its time, and a JavaScript Date has only ms. */
function gapNow(db: Db | TransactionSql) {
  return db`date_trunc('milliseconds', clock_timestamp())`;
}

/**
 * @returns a function that returns the secret that signs the notifications of a base's webhook, undefined without a
 *   webhook, and throws BasetideError `secret_unreadable`, `control_unavailable`
 */
export function webhookSecrets({ db, secrets }: Pick<Context, "db" | "secrets">) {
  const rows = new SharedLookup(async (ids) => {
    const found = await db<{ id: string; secret: string }[]>`
      select base_id as id, encrypted_secret as secret from live_feeds
      where base_id = any (${ids}) and encrypted_secret is not null`;
    return new Map(found.map(({ id, secret }) => [id, secret]));
  });
  return async (baseId: string): Promise<string | undefined> => {
    const encrypted = await rows.get(baseId);
    return encrypted && secrets.decrypt(encrypted, `live_feeds.secret:${baseId}`);
  };
}

/**
 * Records a notification of the source, and wakes the worker that has the base. The first one at an address proves that it
 * can be reached; the later ones do not write that row, which all bases share.
 */
export async function recordNotification(db: Db, address: string, baseId: string): Promise<void> {
  await db`
    with notified as (
        update live_feeds set notified_at = now() where base_id = ${baseId} returning base_id, notification_url),
      proven as (
        insert into notification_addresses (address, is_proven) select ${address}, true from notified
        where starts_with(notification_url, ${`${address}/`})
          and not exists (select from notification_addresses where address = ${address} and is_proven)
        on conflict (address) do update set is_proven = true returning address),
      news (payload) as (select base_id from notified union all select ${ADDRESS_CHANGED} from proven)
    select pg_notify(${NOTIFICATION_CHANNEL}, payload) from news`;
}

/** Forgets a webhook that is no longer the base's, or cannot be seen, so that another one is created. */
export async function dropWebhook(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set webhook_id = null, encrypted_secret = null, state = 'making', reason = '', refused_at = null,
      off_since = null, retry_at = null
    where base_id = ${baseId}`;
}

/** Forgets the refusal of a key that was replaced, so that the new key is tried at once. */
export async function forgetRefusal(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set state = 'making', reason = '', refused_at = null, off_since = null, retry_at = null
    where base_id = ${baseId} and state = 'refused'`;
}

export async function forgetFeed(db: Db, baseId: string): Promise<void> {
  await db`delete from live_feeds where base_id = ${baseId}`;
}

function dateOf(ms: number | undefined): Date | null {
  return ms === undefined ? null : new Date(ms);
}

/**
 * A condition on the row `f` of live_feeds: notifications have an address, none was missed since the last one
 * arrived, and the address is not known to be out of reach.
 */
export function hasNotifications(db: Db): ReturnType<Db> {
  return db`(f.notification_url is not null and not ${hasMissedNotification(db)} and not exists (
    select from notification_addresses as a where not a.is_proven and starts_with(f.notification_url, a.address || '/')))`;
}

/** A condition on the row `f` of live_feeds. */
function hasMissedNotification(db: Db) {
  return db`(f.missed_notification_at is not null and coalesce(f.notified_at <= f.missed_notification_at, true))`;
}
