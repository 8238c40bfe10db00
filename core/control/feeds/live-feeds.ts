/**
 * What is kept of a base's feed of changes: the source's hook, how far it has been read, and how well it does.
 *
 * G1. A hook and the gap before it are noted in one statement: there is never a hook that nobody knows to have begun
 *     only then.
 * G2. What is noted of a hook is noted only while that hook is the base's: whoever still holds an older one changes
 *     nothing.
 */
import type { TransactionSql } from "postgres";
import type { Context, Db } from "../../context";
import { serverTime } from "../../postgres";

/** Pings are passed on to workers here; the payload is the base's id. */
export const PING_CHANNEL = "basetide_ping";

/** A source that has refused is asked again after so long, or at once with another key. */
const REFUSED_RETRY = "1 hour";

export interface KeptFeed {
  state: "making" | "on" | "refused";
  /** Refused, and not to be tried again yet. */
  isResting: boolean;
  hookId: string | null;
  sealedSecret: string | null;
  /** Of the hook: what is before it is durable in the replica. */
  cursor: number;
  notificationUrl: string | null;
  /** On the source's clock, ms since 1970. */
  expiresMs: number | undefined;
  /** By the server's clock; its age by nobody's. */
  gapSince: Date | null;
  gapMsAgo: number | null;
  /** Are its pings to be waited for? */
  hasPings: boolean;
  /** Has it been pinged since it was last read? */
  isPinged: boolean;
  /** How long ago the source was asked how the hook is; Infinity: never. */
  checkedMsAgo: number;
}

export interface NewHook {
  id: string;
  sealedSecret: string;
  notificationUrl: string | null;
  expiresMs: number | undefined;
}

export async function loadFeed(db: Db, baseId: string): Promise<KeptFeed | undefined> {
  const [row] = await db<
    (Omit<KeptFeed, "cursor" | "expiresMs"> & { cursor: string; expiresAt: Date | null })[]
  >`
    select state, hook_id as "hookId", sealed_secret as "sealedSecret", cursor,
      notification_url as "notificationUrl", expires_at as "expiresAt", gap_since as "gapSince",
      (extract(epoch from clock_timestamp() - gap_since) * 1000)::double precision as "gapMsAgo",
      ${hasPings(db)} as "hasPings",
      coalesce(state = 'refused' and refused_at > now() - ${REFUSED_RETRY}::interval, false) as "isResting",
      coalesce(pinged_at > read_at, pinged_at is not null) as "isPinged",
      coalesce(extract(epoch from now() - checked_at) * 1000, 'Infinity')::double precision as "checkedMsAgo"
    from live_feeds as f where base_id = ${baseId}`;
  if (!row) return undefined;
  const { cursor, expiresAt, ...rest } = row;
  return { ...rest, cursor: Number(cursor), expiresMs: expiresAt?.getTime() };
}

/**
 * Puts a new hook in the place of `replaced`, to be read from its beginning (G1).
 *
 * @returns the gap that it begins with; null, changing nothing, when the base is not to be live any more or has another
 *   hook by now
 */
export async function keepHook(
  db: Db,
  baseId: string,
  replaced: string | null,
  hook: NewHook,
): Promise<Date | null> {
  // A lock: who switches live mode off and removes the hook after it must find this one.
  const [kept] = await db<{ gapSince: Date }[]>`
    insert into live_feeds as f
      (base_id, state, hook_id, sealed_secret, cursor, notification_url, expires_at, gap_since, checked_at)
    select b.id, 'on', ${hook.id}, ${hook.sealedSecret}, 1, ${hook.notificationUrl}, ${dateOf(hook.expiresMs)},
      ${gapNow(db)}, now()
    from bases as b where b.id = ${baseId} and b.live and b.state <> 'deleting' for share
    on conflict (base_id) do update
      set state = 'on', reason = '', refused_at = null, hook_id = excluded.hook_id,
        sealed_secret = excluded.sealed_secret, cursor = 1, notification_url = excluded.notification_url,
        expires_at = excluded.expires_at, gap_since = excluded.gap_since, checked_at = now(),
        pinged_at = case when f.notification_url = excluded.notification_url then f.pinged_at end,
        unpinged_at = case when f.notification_url = excluded.notification_url then f.unpinged_at end
      where f.hook_id is not distinct from ${replaced}
    returning gap_since as "gapSince"`;
  return kept?.gapSince ?? null;
}

/** The source says that the hook is well. */
export async function noteHookWell(
  db: Db,
  baseId: string,
  hookId: string,
  expiresMs: number | undefined,
): Promise<void> {
  await db`
    update live_feeds set state = 'on', reason = '', refused_at = null, checked_at = now(),
      expires_at = ${dateOf(expiresMs)}
    where base_id = ${baseId} and hook_id = ${hookId}`;
}

/** The source does not let the key have a feed: why, in words for people. */
export async function noteRefused(db: Db, baseId: string, reason: string): Promise<void> {
  await db`
    insert into live_feeds (base_id, state, reason, refused_at)
    select id, 'refused', ${reason}, now() from bases where id = ${baseId} and live for share
    on conflict (base_id) do update set state = 'refused', reason = excluded.reason, refused_at = now()`;
}

/** Changes of before now are not in the feed. @returns since when; null when the base has another hook by now (G2) */
export async function noteGap(db: Db, baseId: string, hookId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} and hook_id = ${hookId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** The same for whatever hook the base has: its replica is another one from now on. */
export async function noteGapOfAny(db: Db | TransactionSql, baseId: string): Promise<void> {
  await db`update live_feeds set gap_since = greatest(gap_since, ${gapNow(db)}) where base_id = ${baseId}`;
}

/** A sweep has found what was missing before `gapSince`; null: nothing was. What somebody has noted since stays. */
export async function closeGap(db: Db, baseId: string, gapSince: Date | null): Promise<void> {
  const isOpen = db`coalesce(gap_since > ${gapSince}::timestamptz, gap_since is not null)`;
  await db`
    update live_feeds set
      gap_since = case when ${isOpen} then gap_since end,
      stale_since = case when ${isOpen} then stale_since end
    where base_id = ${baseId} and (gap_since is not null or stale_since is not null)`;
}

export async function saveCursor(db: Db, baseId: string, hookId: string, cursor: number): Promise<void> {
  await db`
    update live_feeds set cursor = greatest(cursor, ${cursor})
    where base_id = ${baseId} and hook_id = ${hookId}`;
}

export interface ReadFacts {
  /** How long ago the last read that succeeded began, ms. */
  readMsAgo: number;
  /** Until it is to be read again, ms. */
  dueInMs: number;
  waiting: number;
  changedAt: Date | null;
}

export async function noteRead(db: Db, baseId: string, facts: ReadFacts): Promise<void> {
  await db`
    update live_feeds set
      read_at = now() - ${facts.readMsAgo} * interval '1 ms',
      due_at = now() + ${facts.dueInMs} * interval '1 ms',
      waiting = ${facts.waiting},
      waiting_since = case when ${facts.waiting}::integer > 0 then coalesce(waiting_since, now()) end,
      changed_at = coalesce(${facts.changedAt && serverTime(db, facts.changedAt)}, changed_at)
    where base_id = ${baseId}`;
}

/** A change was found that no ping had told of. */
export async function noteUnpinged(db: Db, baseId: string): Promise<void> {
  await db`update live_feeds set unpinged_at = now() where base_id = ${baseId}`;
}

/** Counts records that only a sweep found changed. */
export async function addMissed(db: Db, baseId: string, count: number): Promise<void> {
  await db`
    update live_feeds set missed = missed + ${count}, missed_at = now() where base_id = ${baseId}`;
}

/** SQL was compared with the source, and shows what it should as far as the comparison went. */
export async function noteFresh(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set compared_at = now(), stale_since = case when gap_since is not null then stale_since end
    where base_id = ${baseId}`;
}

/** SQL was compared with the source, and lags behind: the feed told nothing of what changed before now. */
export async function noteStale(db: Db, baseId: string): Promise<Date | null> {
  const [noted] = await db<{ gapSince: Date }[]>`
    update live_feeds set compared_at = now(), stale_since = coalesce(stale_since, now()),
      gap_since = greatest(gap_since, ${gapNow(db)})
    where base_id = ${baseId} returning gap_since as "gapSince"`;
  return noted?.gapSince ?? null;
}

/** A gap is known by its time, and a Date holds no more than ms. */
function gapNow(db: Db | TransactionSql) {
  return db`date_trunc('milliseconds', clock_timestamp())`;
}

/** Whose pings the hook's are, or undefined where the base has none: what they are signed with. */
export async function pingSecret(
  { db, secrets }: Pick<Context, "db" | "secrets">,
  baseId: string,
): Promise<string | undefined> {
  const [row] = await db<{ sealed_secret: string | null }[]>`
    select sealed_secret from live_feeds where base_id = ${baseId}`;
  return row?.sealed_secret ? secrets.open(row.sealed_secret, hookSecretContext(baseId)) : undefined;
}

/** The source says that there is something new: wakes the worker that has the base. */
export async function notePing(db: Db, baseId: string): Promise<void> {
  await db`
    with pinged as (update live_feeds set pinged_at = now() where base_id = ${baseId} returning base_id)
    select pg_notify(${PING_CHANNEL}, base_id) from pinged`;
}

/** The hook is none of the base's any more, or cannot be seen: another is to be made. */
export async function dropHook(db: Db, baseId: string): Promise<void> {
  await db`
    update live_feeds set hook_id = null, sealed_secret = null, state = 'making', reason = '', refused_at = null
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

/** Where the secret is kept, for the box that seals it. */
export function hookSecretContext(baseId: string): string {
  return `live_feeds.secret:${baseId}`;
}

function dateOf(ms: number | undefined): Date | null {
  return ms === undefined ? null : new Date(ms);
}

/**
 * A condition on the row `f` of live_feeds: pings have an address, none was missing since the last one came, and one
 * did come, of this feed or, which also shows that the console can be reached, of another.
 */
export function hasPings(db: Db): ReturnType<Db> {
  return db`(f.notification_url is not null
    and (f.unpinged_at is null or coalesce(f.pinged_at > f.unpinged_at, false))
    and (f.pinged_at is not null or exists (select from live_feeds as o where o.pinged_at is not null)))`;
}
