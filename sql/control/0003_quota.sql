-- Up Migration

-- The quota ledger: when which base of a source may be asked. A key is a source base, whoever's API key is
-- used ("airtable:appXXXX"). All times are milliseconds since 1970 by this server's clock, as float8.

-- One row per key, changed only by the functions below under the key's advisory lock.
-- Unlogged, since what it holds is worth nothing a few seconds later: no WAL, no wait for a disk. A crash
-- empties it; quota_open then keeps the key shut until whatever was granted before the crash is past.
create unlogged table quota_windows (
  key text constraint quota_windows_pkey primary key,
  -- until when each grant may be used, oldest first: those of the last window, then places booked ahead
  slots float8[] not null default '{}',
  -- the last five grants to sync
  sync_slots float8[] not null default '{}',
  -- earliest next grant to sync by its even spacing
  sync_from float8 not null default 0,
  -- when a client last asked
  client_at float8 not null default 0,
  blocked_until float8 not null default 0,
  -- two calls a second until then (see 0010_budget.sql)
  slow_until float8 not null default 0,
  -- when the source refused what should have been within its limit, lately
  refused_at float8[] not null default '{}',
  -- calls since counted_from that are not in quota_calls yet
  sync_calls integer not null default 0,
  client_calls integer not null default 0,
  counted_from float8 not null
) with (fillfactor = 50);

-- Pauses that the source asked for; survives a crash, and tells people why.
create table quota_blocks (
  key text constraint quota_blocks_pkey primary key,
  reason text not null constraint quota_blocks_reason_known check (reason in ('rate_limited', 'billing_limit')),
  blocked_at timestamptz not null,
  blocked_until timestamptz not null
);

-- Calls per key and month (its first day, UTC); up to 10 s behind, and a crash loses those 10 s.
create table quota_calls (
  key text not null,
  month date not null,
  sync bigint not null default 0,
  client bigint not null default 0,
  constraint quota_calls_pkey primary key (key, month)
);

-- Calls of the last hour per key and minute, for people to see; up to 10 s behind.
create unlogged table quota_minutes (
  key text not null,
  minute timestamptz not null,
  sync integer not null default 0,
  client integer not null default 0,
  constraint quota_minutes_pkey primary key (key, minute)
);

-- Proxies: each says twice a second that it is there. One that this server no longer hears of may be serving clients by
-- itself, with up to `share` places per window of every key.
create table quota_proxies (
  -- its host and port: one that is started again takes its own row over
  id text not null,
  share integer not null,
  seen_at float8 not null,
  constraint quota_proxies_pkey primary key (id)
) with (fillfactor = 50);

-- quota_attend(id, seen, now): a proxy was there at `seen`, by its own idea of this server's time, so that a message that
-- was long on its way does not count for more. Returns its share: two places, or one where there are more than two
-- proxies, so that up to four that are silent leave one place to everybody else.
create function quota_attend(p_id text, p_seen float8, p_now float8 default null) returns integer
language plpgsql as $$
declare
  -- As long as quota_take counts on a silent one.
  remembered_ms constant float8 := 900000;
  now_ms float8 := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  others integer := (
    select count(*) from quota_proxies p where p.id <> p_id and p.seen_at > now_ms - remembered_ms);
  own_share integer := case when others > 1 then 1 else 2 end;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into quota_proxies (id, share, seen_at) values (p_id, own_share, least(p_seen, now_ms))
  on conflict (id) do update set share = excluded.share, seen_at = excluded.seen_at;
  return own_share;
end $$;

-- quota_count(key, since, sync, client): adds calls to the month and to the minute that `since` lies in. It comes
-- once in 10 s of a key that is used, with what was counted since: what is older than an hour goes at the same time.
create function quota_count(p_key text, p_since float8, p_sync integer, p_client integer) returns void
language sql as $$
  insert into quota_calls as c (key, month, sync, client)
  values (p_key, date_trunc('month', to_timestamp(p_since / 1000) at time zone 'UTC'), p_sync, p_client)
  on conflict (key, month) do update set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_minutes as m (key, minute, sync, client)
  select p_key, date_trunc('minute', to_timestamp(p_since / 1000)), p_sync, p_client
  where p_sync <> 0 or p_client <> 0
  on conflict (key, minute) do update set sync = m.sync + excluded.sync, client = m.client + excluded.client;
  delete from quota_minutes m
  where m.key = p_key and m.minute < to_timestamp(p_since / 1000) - interval '1 hour';
$$;

-- quota_open(key, now): makes the key's row and returns it. A key that was counted before and has no row
-- lived through a crash: other processes may have gone on by themselves until they see the server again
-- (within a second), so it stays shut for that second and a window after it.
create function quota_open(p_key text, p_now float8) returns quota_windows
language plpgsql as $$
declare
  q quota_windows;
  shut_until float8 := 0;
begin
  if exists (select from quota_calls c where c.key = p_key) then
    shut_until := greatest(
      p_now + 2100,
      (select extract(epoch from b.blocked_until) * 1000 from quota_blocks b
       where b.key = p_key and b.reason = 'rate_limited'));
  end if;
  perform quota_count(p_key, p_now, 0, 0);
  insert into quota_windows (key, blocked_until, counted_from, slow_until)
  values (p_key, shut_until, p_now, coalesce(
    (select extract(epoch from s.until) * 1000 from quota_slowed s where s.key = p_key), 0))
  returning * into q;
  return q;
end $$;

-- quota_take(key, kind, share, within, back, now, user): books calls, and returns when each may go out.
--   kind, share  'client', or 'sync' with its share of requests per window (3 or 5)
--   within       one element per call wanted: how many ms ahead its place may be
--   back         places booked earlier that were not used: they are free again
--   now          a clock of the tests; else the server's, read after the locks, so that places are in order
--   user         of the source, where its own limit over all bases (50 per window) may matter; null: it does not
--   late         how long after its time a place is to be good, up to 100 ms: what a slow process is late by
-- Returns asked_at (now), slots (one per call wanted: until when it may go out, which it may from `late` ms before that;
-- null when there is no place within reach) and next_at: the earliest time that a further call of this kind could get as
-- things stand.
--
-- I4. Never a sixth place within 1,025 ms of the first of five: a second, and 25 ms for calls that reach the
-- source later than others; from the end of the first place's span to the beginning of the sixth's. A place never ends
-- before one booked already, so clients keep their order, and sync, which asks for now and not for later, gets only what
-- no client has asked for.
-- Sync's places are spaced evenly over its share, or a client would find five of them gone at once and wait a
-- second (95 of 100 clients waited under 210 ms so, 260 to 450 ms where sync kept to its own spacing only).
-- A key that the source has slowed has two places per window, and sync its part of those. What proxies that are silent
-- may give out by themselves is left to them, for a quarter of an hour: one that was killed and did not come back is
-- no different from here.
-- Locks are taken in one order, the key's and then the user's, so that no two calls wait for each other.
create function quota_take(
  p_key text, p_kind text, p_share integer, p_within float8[], p_back float8[] default '{}',
  p_now float8 default null, p_user text default null, p_late float8 default 0,
  out asked_at float8, out slots float8[], out next_at float8)
language plpgsql as $$
declare
  window_ms constant float8 := 1025;
  slowed_per_window constant integer := 2;
  -- How much earlier than evenly spaced sync may go, to make up for a slow page or a late start.
  quiet_credit_ms constant float8 := 1025;
  busy_credit_ms constant float8 := 10;
  -- A client is about for so long after it asked.
  busy_ms constant float8 := 5000;
  -- With the second between two tries of a sync and the two windows that may be booked: one call in 10 s.
  overdue_ms constant float8 := 6900;
  count_every_ms constant float8 := 10000;
  -- A proxy counts as silent after so long, and for so long. See core/quota/attendance.ts.
  silent_ms constant float8 := 1500;
  remembered_ms constant float8 := 900000;
  q quota_windows;
  per_window integer := 5;
  share integer;
  spacing_ms float8;
  -- places of the user, over all keys; null where nobody counts them
  user_slots float8[];
  credit_ms float8;
  is_busy boolean;
  is_sync boolean := p_kind = 'sync';
  is_changed boolean := false;
  slot float8;
  reach float8;
  n integer;
  m integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  if p_user is not null then
    user_slots := quota_user_slots(p_user);
  end if;
  asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  select * into q from quota_windows w where w.key = p_key;
  if not found then
    q := quota_open(p_key, asked_at);
  end if;

  if asked_at < q.slow_until then
    per_window := slowed_per_window;
  end if;
  share := greatest(1, p_share * per_window / 5);
  per_window := greatest(1, per_window - (
    select coalesce(sum(p.share), 0) from quota_proxies p
    where p.seen_at between asked_at - remembered_ms and asked_at - silent_ms));
  share := least(share, per_window);
  spacing_ms := window_ms / share;

  if q.slots[cardinality(q.slots)] > asked_at + 5000 then
    -- No place is booked so far ahead: the clock was set back.
    q.slots := '{}';
    q.sync_slots := '{}';
    q.sync_from := 0;
    q.client_at := 0;
    q.blocked_until := asked_at + window_ms;
  end if;
  if p_now is null then
    -- While the server was away processes went on by themselves: see quota_open.
    q.blocked_until := greatest(q.blocked_until, extract(epoch from pg_postmaster_start_time()) * 1000 + 2100);
  end if;
  if asked_at - q.counted_from > count_every_ms and cardinality(p_within) > 0 then
    perform set_config('synchronous_commit', 'off', true);
    perform quota_count(p_key, q.counted_from, q.sync_calls, q.client_calls);
    q.counted_from := asked_at;
    q.sync_calls := 0;
    q.client_calls := 0;
    is_changed := true;
  end if;
  while q.slots[1] <= asked_at - window_ms loop
    q.slots := q.slots[2:];
  end loop;

  if user_slots is not null then
    user_slots := array(
      select s from unnest(user_slots) s
      where s between asked_at - window_ms and asked_at + 5000);
  end if;

  if not is_sync and cardinality(p_within) > 0 then
    q.client_at := asked_at;
    is_changed := true;
  end if;
  is_busy := asked_at - q.client_at < busy_ms;
  credit_ms := case when is_busy then busy_credit_ms else quiet_credit_ms end;

  foreach slot in array p_back loop
    n := array_position(q.slots, slot);
    continue when n is null;
    q.slots := q.slots[:n - 1] || q.slots[n + 1:];
    -- Other keys may have a place at the very same time: one goes, not all.
    m := array_position(user_slots, slot);
    if m is not null then
      user_slots := user_slots[:m - 1] || user_slots[m + 1:];
    end if;
    if is_sync then
      q.sync_slots := array_remove(q.sync_slots, slot);
      q.sync_from := q.sync_from - spacing_ms;
      q.sync_calls := q.sync_calls - 1;
    else
      q.client_calls := q.client_calls - 1;
    end if;
    is_changed := true;
  end loop;

  slots := array_fill(null::float8, array[cardinality(p_within)]);
  -- Once more than calls are wanted, for next_at.
  for i in 1 .. cardinality(p_within) + 1 loop
    n := cardinality(q.slots);
    slot := greatest(
      asked_at, q.blocked_until, q.slots[n] - p_late, q.slots[n - per_window + 1] + window_ms);
    reach := p_within[i];
    if is_sync then
      m := cardinality(q.sync_slots);
      if q.sync_slots[m] > asked_at - overdue_ms then
        slot := greatest(slot, q.sync_from, q.sync_slots[m - share + 1] - p_late + window_ms);
        if is_busy then
          slot := greatest(slot, q.slots[n] - p_late + window_ms / per_window - busy_credit_ms);
        end if;
      else
        -- Sync must not stand still: for once it gets in line with the clients.
        reach := reach + 2 * window_ms;
      end if;
    end if;
    if user_slots is not null then
      slot := quota_user_place(user_slots, slot);
    end if;
    if slot - asked_at <= reach then
      slots[i] := slot + p_late;
      q.slots := q.slots || slots[i];
      if user_slots is not null then
        user_slots := user_slots || slots[i];
      end if;
      if is_sync then
        q.sync_slots := q.sync_slots[greatest(m - 3, 1):] || slots[i];
        q.sync_from := greatest(q.sync_from, slot - credit_ms) + spacing_ms;
        q.sync_calls := q.sync_calls + 1;
      else
        q.client_calls := q.client_calls + 1;
      end if;
      is_changed := true;
    else
      next_at := slot;
    end if;
  end loop;

  if is_changed then
    update quota_windows w
    set slots = q.slots, sync_slots = q.sync_slots, sync_from = q.sync_from, client_at = q.client_at,
        blocked_until = q.blocked_until,
        sync_calls = q.sync_calls, client_calls = q.client_calls, counted_from = q.counted_from
    where w.key = p_key;
    if user_slots is not null then
      update quota_users u set slots = user_slots where u.id = p_user;
    end if;
  end if;
end $$;

-- quota_block(key, ms, reason, now): no call of the key for `ms`, for anyone. Places booked ahead are void:
-- their holders look at blocked_until before they go, and those calls are not counted.
-- What the source refuses though no more went out than it allows was refused because it has slowed the key, or because
-- somebody else asks for the same base: after the third time within ten minutes the key keeps to two calls a second,
-- for an hour, and for another where the first refusal after it comes at once.
create function quota_block(p_key text, p_ms float8, p_reason text, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
  until_ms float8;
  begun_ms float8;
  -- More than so many calls within the last while: a slowed key allows two in a second.
  slowed_per_window constant integer := 2;
  -- Until then places end that may have been used: their spans have begun.
  most_late_ms constant float8 := 100;
  lately_ms constant float8 := 1500;
  remembered_ms constant float8 := 600000;
  suspected_ms constant float8 := 3600000;
  q quota_windows;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  until_ms := now_ms + p_ms;
  begun_ms := now_ms + most_late_ms;
  if not exists (select from quota_windows w where w.key = p_key) then
    perform quota_open(p_key, now_ms);
  end if;
  select * into q from quota_windows w where w.key = p_key;
  if p_reason = 'rate_limited' and q.blocked_until <= now_ms and q.slow_until <= now_ms
    and (select count(*) from unnest(q.slots) s where s between now_ms - lately_ms and now_ms) > slowed_per_window
    and not exists (
      select from bases b join workspaces w on w.id = b.workspace_id
      where b.platform || ':' || b.source_base_id = p_key and w.plan = 'business')
  then
    q.refused_at := array(select r from unnest(q.refused_at) r where r > now_ms - remembered_ms order by r) || now_ms;
    if cardinality(q.refused_at) >= 3 or q.slow_until > now_ms - remembered_ms then
      perform quota_slow(p_key, now_ms + suspected_ms, false, now_ms);
      q.refused_at := '{}';
    end if;
    update quota_windows w set refused_at = q.refused_at where w.key = p_key;
  end if;
  update quota_windows w
  set blocked_until = greatest(w.blocked_until, until_ms),
      slots = array(select s from unnest(w.slots) s where s <= begun_ms order by s),
      sync_slots = array(select s from unnest(w.sync_slots) s where s <= begun_ms order by s),
      sync_calls = w.sync_calls - (select count(*) from unnest(w.sync_slots) s where s > begun_ms),
      client_calls = w.client_calls - (
        (select count(*) from unnest(w.slots) s where s > begun_ms)
        - (select count(*) from unnest(w.sync_slots) s where s > begun_ms))
  where w.key = p_key;
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, p_reason, to_timestamp(now_ms / 1000), to_timestamp(until_ms / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
end $$;

-- quota_late(key, slot, now): a process stood still between its last look at the clock and the request: the call of that
-- place went out only now.
create function quota_late(p_key text, p_slot float8, p_now float8 default null) returns void
language plpgsql as $$
declare
  taken float8[];
  n integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  select w.slots into taken from quota_windows w where w.key = p_key;
  n := array_position(taken, p_slot);
  if n is not null then
    taken := taken[:n - 1] || taken[n + 1:];
  end if;
  taken := taken || coalesce(p_now, extract(epoch from clock_timestamp()) * 1000)::float8;
  update quota_windows w set slots = array(select s from unnest(taken) s order by s) where w.key = p_key;
end $$;

-- quota_forget(key, now): drops what is kept of a key. Its window stays while calls of the last second
-- or a block still count: clients may go on asking for the base through the proxy.
create function quota_forget(p_key text, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  delete from quota_windows w
  where w.key = p_key and w.blocked_until <= now_ms
    and coalesce(w.slots[cardinality(w.slots)], 0) <= now_ms - 1025;
  update quota_windows w set sync_calls = 0, client_calls = 0, counted_from = now_ms where w.key = p_key;
  delete from quota_blocks b where b.key = p_key;
  delete from quota_calls c where c.key = p_key;
  delete from quota_kinds k where k.key = p_key;
  delete from quota_slowed s where s.key = p_key;
end $$;

-- Down Migration

drop function quota_forget, quota_late, quota_block, quota_take, quota_open, quota_count, quota_attend;
drop table quota_proxies, quota_minutes, quota_calls, quota_blocks, quota_windows;
