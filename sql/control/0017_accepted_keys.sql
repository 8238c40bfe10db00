-- Up Migration

-- Keys that the source has accepted for a base, by which proxies know each other's. Only hashes (core/keys/key-hash.ts).
create table accepted_keys (
  source_base_id text not null,
  key_hash text not null,
  accepted_at timestamptz not null default now(),
  constraint accepted_keys_pkey primary key (source_base_id, key_hash)
) with (fillfactor = 50);

create index accepted_keys_accepted_idx on accepted_keys (accepted_at);

-- accept_key(base, hash): the source has accepted the key for the base. Keeps the 200 latest of a base, for a day.
create function accept_key(p_base text, p_hash text) returns void
language sql as $$
  insert into accepted_keys (source_base_id, key_hash) values (p_base, p_hash)
  on conflict (source_base_id, key_hash) do update set accepted_at = now();
  delete from accepted_keys k
  where k.accepted_at < now() - interval '1 day'
    or (k.source_base_id = p_base and k.key_hash in (
      select o.key_hash from accepted_keys o where o.source_base_id = p_base
      order by o.accepted_at desc, o.key_hash offset 200));
$$;

-- When the source last accepted the base's own key, as far as syncs do not say it: at a change of the key, or when the
-- key read a record that a client had written.
alter table bases add column key_accepted_at timestamptz;

-- Slow-downs are known by whose word they rest on: '' is what the source has refused, else what an account says of its plan.
alter table quota_slowed
  add column account_id text not null default '',
  drop constraint quota_slowed_pkey,
  add constraint quota_slowed_pkey primary key (key, account_id);

-- What accounts said until now is found out again within a quarter of a minute.
delete from quota_slowed where is_certain;

alter table quota_windows
  -- the last five grants to calls whose key the source has not accepted
  add column unproven_slots float8[] not null default '{}',
  -- two calls a second until then, by the word of this account about its plan
  add column claimed_until float8 not null default 0,
  add column claimed_by text;

update quota_windows w set slow_until = coalesce(
  (select extract(epoch from s.until) * 1000 from quota_slowed s where s.key = w.key), 0);

-- quota_is_sole(key, account): has no other account the base connected?
create function quota_is_sole(p_key text, p_account text) returns boolean
language sql stable as $$
  select not exists (
    select from bases b
    where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2)
      and b.account_id <> p_account and b.state <> 'deleting');
$$;

-- quota_open(key, now): makes the key's row and returns it. A key that was counted before and has no row
-- lived through a crash: other processes may have gone on by themselves until they see the server again
-- (within a second), so it stays shut for that second and a window after it.
create or replace function quota_open(p_key text, p_now float8) returns quota_windows
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
  with claim as (
    select s.until, s.account_id from quota_slowed s where s.key = p_key and s.account_id <> ''
    order by s.until desc limit 1)
  insert into quota_windows (key, blocked_until, counted_from, slow_until, claimed_until, claimed_by)
  values (p_key, shut_until, p_now, coalesce(
    (select extract(epoch from s.until) * 1000 from quota_slowed s where s.key = p_key and s.account_id = ''), 0),
    coalesce((select extract(epoch from c.until) * 1000 from claim c), 0), (select c.account_id from claim c))
  returning * into q;
  return q;
end $$;

-- quota_take(key, kind, share, within, back, now, user): books calls, and returns when each may go out.
--   kind, share  'client'; 'sync' with its share of requests per window (3 or 5); or 'unproven', a client whose key the
--                source has not accepted for the base
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
-- Unproven calls come last: one in 10 s while clients ask; otherwise five in 25 s too, but only while the window is half empty.
-- One that had no place for 10 s gets in line with the clients, so that a new client of a busy base is not shut out. They
-- are not counted here: see quota_served.
-- A key that the source has slowed has two places per window, and sync its part of those. What proxies that are silent
-- may give out by themselves is left to them, for a quarter of an hour: one that was killed and did not come back is
-- no different from here.
-- Locks are taken in one order, the key's and then the user's, so that no two calls wait for each other.
create or replace function quota_take(
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
  -- Unproven calls: five in so long, or one in so long while a client is about.
  unproven_window_ms constant float8 := 25000;
  unproven_pause_ms constant float8 := 10000;
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
  is_unproven boolean := p_kind = 'unproven';
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

  if asked_at < q.slow_until
    or (asked_at < q.claimed_until and quota_is_sole(p_key, q.claimed_by))
  then
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
    q.unproven_slots := '{}';
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

  if not is_sync and not is_unproven and cardinality(p_within) > 0 then
    q.client_at := asked_at;
    is_changed := true;
  end if;
  is_busy := asked_at - q.client_at < busy_ms;
  credit_ms := case when is_busy then busy_credit_ms else quiet_credit_ms end;

  foreach slot in array p_back loop
    n := array_position(q.slots, slot);
    if n is null then
      -- A process that stood still returns it late: it no longer limits anything, but it was counted and not used.
      if slot <= asked_at - window_ms then
        q.sync_calls := q.sync_calls - is_sync::integer;
        q.client_calls := q.client_calls - (not is_sync and not is_unproven)::integer;
        is_changed := true;
      end if;
      continue;
    end if;
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
    elsif is_unproven then
      q.unproven_slots := array_remove(q.unproven_slots, slot);
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
    if is_unproven then
      m := cardinality(q.unproven_slots);
      if q.unproven_slots[m] > asked_at - unproven_pause_ms then
        slot := case when is_busy
          then greatest(slot, q.unproven_slots[m] + unproven_pause_ms)
          else greatest(slot, q.unproven_slots[m - 4] + unproven_window_ms,
            q.slots[n - greatest(1, per_window - 2) + 1] + window_ms)
        end;
      else
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
      elsif is_unproven then
        q.unproven_slots := q.unproven_slots[greatest(m - 3, 1):] || slots[i];
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
        unproven_slots = q.unproven_slots, blocked_until = q.blocked_until,
        sync_calls = q.sync_calls, client_calls = q.client_calls, counted_from = q.counted_from
    where w.key = p_key;
    if user_slots is not null then
      update quota_users u set slots = user_slots where u.id = p_user;
    end if;
  end if;
end $$;

-- quota_served(key, now): the source has served a call that was not counted when it was granted.
create function quota_served(p_key text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  update quota_windows w set client_calls = w.client_calls + 1 where w.key = p_key;
end $$;

drop function quota_slow(text, float8, boolean, float8);

-- quota_slow(key, until, is_certain, now, account): two calls a second for the key until then (ms since 1970). Judging by
-- what the source refused (account ''): for everyone. By what an account says of its plan: only while no other account has
-- the base connected, as the claim of one must not slow another.
create function quota_slow(
  p_key text, p_until float8, p_is_certain boolean, p_now float8 default null, p_account text default '') returns void
language plpgsql as $$
declare
  now_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  insert into quota_slowed as s (key, account_id, since, until, is_certain)
  values (p_key, p_account, to_timestamp(now_ms / 1000), to_timestamp(p_until / 1000), p_is_certain)
  on conflict (key, account_id) do update
    set since = case when s.until < excluded.since then excluded.since else s.since end,
        until = excluded.until, is_certain = excluded.is_certain;
  if p_account = '' then
    update quota_windows w set slow_until = p_until where w.key = p_key;
  else
    update quota_windows w set claimed_until = p_until, claimed_by = p_account where w.key = p_key;
  end if;
end $$;

drop function quota_block(text, float8, text, float8);

-- quota_block(key, ms, reason, now): no call of the key for `ms`, for anyone. Places booked ahead are void:
-- their holders look at blocked_until before they go, and those calls are not counted.
-- What the source refuses though no more went out than it allows was refused because it has slowed the key, or because
-- somebody else asks for the same base: after the third time within ten minutes the key keeps to two calls a second,
-- for an hour, and for another where the first refusal after it comes at once.
-- `own` is false for what a client's key was told, which may have been that client's own limit: then there is a pause only
-- where the base was asked at least three times in the last while, and no slow-down comes of it. Returns whether there is
-- a pause.
-- What every account that has the base connected says has no cap is not slowed for what the source refuses.
create function quota_block(
  p_key text, p_ms float8, p_reason text, p_now float8 default null, p_own boolean default true) returns boolean
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
  if not p_own and (
    select count(*) from unnest(q.slots) s where s between now_ms - lately_ms and begun_ms) <= slowed_per_window
  then
    return false;
  end if;
  if p_own and p_reason = 'rate_limited' and q.blocked_until <= now_ms and q.slow_until <= now_ms
    and (select count(*) from unnest(q.slots) s where s between now_ms - lately_ms and now_ms) > slowed_per_window
    and not coalesce((
      select bool_and(coalesce(w.plan = 'business', false))
      from bases b left join workspaces w on w.id = b.workspace_id
      where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2)
        and b.state <> 'deleting'), false)
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
      unproven_slots = array(select s from unnest(w.unproven_slots) s where s <= begun_ms order by s),
      sync_calls = w.sync_calls - (select count(*) from unnest(w.sync_slots) s where s > begun_ms),
      client_calls = w.client_calls - (
        (select count(*) from unnest(w.slots) s where s > begun_ms)
        - (select count(*) from unnest(w.sync_slots) s where s > begun_ms)
        - (select count(*) from unnest(w.unproven_slots) s where s > begun_ms))
  where w.key = p_key;
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, p_reason, to_timestamp(now_ms / 1000), to_timestamp(until_ms / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
  return true;
end $$;

drop function quota_hasten(text);

-- quota_hasten(key, account): ends what the account's plan slowed, and what the source's refusals did where no other
-- account has the base connected. Without an account: all of it.
create function quota_hasten(p_key text, p_account text default null) returns void
language plpgsql as $$
declare
  is_sole boolean := p_account is null or quota_is_sole(p_key, p_account);
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  delete from quota_slowed s
  where s.key = p_key and (p_account is null or s.account_id = p_account or (s.account_id = '' and is_sole));
  update quota_windows w set
    slow_until = case when is_sole then 0 else w.slow_until end,
    refused_at = case when is_sole then '{}' else w.refused_at end,
    claimed_until = case when p_account is null or w.claimed_by = p_account then 0 else w.claimed_until end
  where w.key = p_key;
end $$;

drop function quota_leave(text, text);

-- quota_leave(key, workspace, base): what a base that goes has used this month stays with its workspace. Of sync only its
-- own calls, where others have the source base connected, too.
create function quota_leave(p_key text, p_workspace text, p_base text default null) returns void
language plpgsql as $$
declare
  this_month date := date_trunc('month', now() at time zone 'UTC');
  is_shared boolean := p_base is not null and exists (
    select from bases b
    where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2) and b.id <> p_base);
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  insert into quota_calls as c (key, month, sync, client)
  select 'left:' || p_workspace, this_month,
    case when is_shared
      then (select coalesce(sum(k.calls), 0) from quota_kinds k where k.key = 'base:' || p_base and k.month = this_month)
      else coalesce(sum(used.sync), 0)
    end,
    coalesce(sum(used.client), 0)
  from (
    select q.sync, q.client from quota_calls q where q.key = p_key and q.month = this_month
    union all
    select w.sync_calls, w.client_calls from quota_windows w where w.key = p_key
  ) as used
  on conflict on constraint quota_calls_pkey do update
    set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_kinds as k (key, month, kind, calls)
  select 'left:' || p_workspace, q.month, q.kind, q.calls from quota_kinds q
  where q.key = case when is_shared then 'base:' || p_base else p_key end and q.month = this_month
  on conflict on constraint quota_kinds_pkey do update set calls = k.calls + excluded.calls;
end $$;

-- Down Migration

drop function quota_leave(text, text, text);

-- quota_leave(key, workspace): what a base that goes has used this month stays with its workspace.
create function quota_leave(p_key text, p_workspace text) returns void
language plpgsql as $$
declare
  this_month date := date_trunc('month', now() at time zone 'UTC');
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  insert into quota_calls as c (key, month, sync, client)
  select 'left:' || p_workspace, this_month, coalesce(sum(used.sync), 0), coalesce(sum(used.client), 0)
  from (
    select q.sync, q.client from quota_calls q where q.key = p_key and q.month = this_month
    union all
    select w.sync_calls, w.client_calls from quota_windows w where w.key = p_key
  ) as used
  on conflict on constraint quota_calls_pkey do update
    set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_kinds as k (key, month, kind, calls)
  select 'left:' || p_workspace, q.month, q.kind, q.calls from quota_kinds q
  where q.key = p_key and q.month = this_month
  on conflict on constraint quota_kinds_pkey do update set calls = k.calls + excluded.calls;
end $$;

drop function quota_hasten;
drop function quota_block;
drop function quota_slow;
drop function quota_served;

delete from quota_slowed where account_id <> '';

alter table quota_slowed
  drop constraint quota_slowed_pkey,
  drop column account_id,
  add constraint quota_slowed_pkey primary key (key);

-- quota_slow(key, until, is_certain, now): two calls a second for the key until then (ms since 1970), for everyone.
create function quota_slow(p_key text, p_until float8, p_is_certain boolean, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  insert into quota_slowed as s (key, since, until, is_certain)
  values (p_key, to_timestamp(now_ms / 1000), to_timestamp(p_until / 1000), p_is_certain)
  on conflict (key) do update
    set since = case when s.until < excluded.since then excluded.since else s.since end,
        until = excluded.until, is_certain = excluded.is_certain;
  update quota_windows w set slow_until = p_until where w.key = p_key;
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

-- quota_hasten(key): ends that.
create function quota_hasten(p_key text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  delete from quota_slowed s where s.key = p_key;
  update quota_windows w set slow_until = 0, refused_at = '{}' where w.key = p_key;
end $$;

-- quota_open(key, now): makes the key's row and returns it. A key that was counted before and has no row
-- lived through a crash: other processes may have gone on by themselves until they see the server again
-- (within a second), so it stays shut for that second and a window after it.
create or replace function quota_open(p_key text, p_now float8) returns quota_windows
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
create or replace function quota_take(
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

drop function quota_is_sole;
alter table quota_windows drop column unproven_slots, drop column claimed_until, drop column claimed_by;
alter table bases drop column key_accepted_at;
drop function accept_key;
drop table accepted_keys;
