-- Up Migration

-- A workspace of the source: its plan caps the calls of a month over all its bases.
create table workspaces (
  id text not null,
  account_id text not null,
  name text not null,
  plan text not null,
  -- null: no cap
  calls_per_month integer,
  -- Calls of the month that sync leaves to clients.
  reserve integer not null,
  created_at timestamptz not null default now(),
  constraint workspaces_pkey primary key (id),
  constraint workspaces_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint workspaces_name_key unique (account_id, name),
  constraint workspaces_plan_check check (plan in ('free', 'team', 'business', 'custom')),
  constraint workspaces_calls_check check (calls_per_month > 0),
  constraint workspaces_reserve_check check (reserve between 0 and coalesce(calls_per_month, 0))
);

alter table bases
  add column workspace_id text,
  add column rests_until timestamptz,
  add column source_user_id text,
  add constraint bases_workspace_fkey foreign key (workspace_id) references workspaces (id) on delete set null;

comment on column bases.workspace_id is 'null: its calls are not capped';
comment on column bases.rests_until is 'when the budget lets the next sync begin, where that is a while off';
comment on column bases.source_user_id is 'whose the API key is, as the source says; null while nobody has asked';

create index bases_workspace_idx on bases (workspace_id) where workspace_id is not null;
create index bases_source_user_idx on bases (platform, source_user_id) where source_user_id is not null;

-- What the calls of sync were for, per key and month; up to 10 s behind. Keys `left:<workspace>` hold, here and in
-- quota_calls, what bases used that are gone: the source goes on counting it.
create table quota_kinds (
  key text not null,
  month date not null,
  kind text not null,
  calls bigint not null,
  constraint quota_kinds_pkey primary key (key, month, kind)
);

-- Keys that the source answers only twice a second, as it does beyond a Team plan's cap; survives a crash.
create table quota_slowed (
  key text not null,
  since timestamptz not null,
  until timestamptz not null,
  -- Known from the workspace's calls, and not only guessed from what the source refuses.
  is_certain boolean not null,
  constraint quota_slowed_pkey primary key (key)
);

alter table quota_windows
  add column slow_until float8 not null default 0,
  -- when the source refused what should have been within its limit, lately
  add column refused_at float8[] not null default '{}';

-- Places of a user of the source over all keys, for the limit that the source sets each user. Only of users with so
-- many bases that it may matter; worth nothing a few seconds later.
create unlogged table quota_users (
  id text not null,
  slots float8[] not null default '{}',
  constraint quota_users_pkey primary key (id)
) with (fillfactor = 50);

-- quota_user_slots(user): the user's places, locked until the transaction ends.
create function quota_user_slots(p_user text) returns float8[]
language plpgsql as $$
declare
  found_slots float8[];
begin
  select u.slots into found_slots from quota_users u where u.id = p_user for update;
  if not found then
    insert into quota_users (id) values (p_user) on conflict do nothing;
    select u.slots into found_slots from quota_users u where u.id = p_user for update;
  end if;
  return found_slots;
end $$;

-- quota_user_place(slots, from): the earliest time from `from` on at which one more call leaves no more than 50 in
-- any 1,025 ms. Places of other keys may lie ahead, so it looks both ways.
create function quota_user_place(p_slots float8[], p_from float8) returns float8
language plpgsql immutable as $$
declare
  window_ms constant float8 := 1025;
  per_window constant integer := 50;
  place float8 := p_from;
  near float8[];
begin
  loop
    exit when cardinality(p_slots) < per_window;
    near := array(
      select s from unnest(p_slots) s where s > place - window_ms and s < place + window_ms order by s);
    exit when cardinality(near) < per_window;
    place := near[cardinality(near) - per_window + 1] + window_ms;
  end loop;
  return place;
end $$;

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

-- quota_hasten(key): ends that.
create function quota_hasten(p_key text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  delete from quota_slowed s where s.key = p_key;
  update quota_windows w set slow_until = 0, refused_at = '{}' where w.key = p_key;
end $$;

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

drop function quota_take;

-- quota_take(key, kind, share, within, back, now, user): books calls, and returns when each may go out.
--   kind, share  'client', or 'sync' with its share of requests per window (3 or 5)
--   within       one element per call wanted: how many ms ahead its place may be
--   back         places booked earlier that were not used: they are free again
--   now          a clock of the tests; else the server's, read after the locks, so that places are in order
--   user         of the source, where its own limit over all bases (50 per window) may matter; null: it does not
-- Returns asked_at (now), slots (one per call wanted: its time, null when there is no place within reach) and
-- next_at: the earliest time that a further call of this kind could get as things stand.
--
-- I4. Never a sixth place within 1,025 ms of the first of five: a second, and 25 ms for calls that reach the
-- source later than others. A place is never before one booked already, so clients keep their order, and sync,
-- which asks for now and not for later, gets only what no client has asked for.
-- Sync's places are spaced evenly over its share, or a client would find five of them gone at once and wait a
-- second (95 of 100 clients waited under 210 ms so, 260 to 450 ms where sync kept to its own spacing only).
-- A key that the source has slowed has two places per window, and sync its part of those.
-- Locks are taken in one order, the key's and then the user's, so that no two calls wait for each other.
create function quota_take(
  p_key text, p_kind text, p_share integer, p_within float8[], p_back float8[] default '{}',
  p_now float8 default null, p_user text default null,
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
  q quota_windows;
  per_window integer := 5;
  share integer := p_share;
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
    share := greatest(1, p_share * slowed_per_window / 5);
  end if;
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
    slot := greatest(asked_at, q.blocked_until, q.slots[n], q.slots[n - per_window + 1] + window_ms);
    reach := p_within[i];
    if is_sync then
      m := cardinality(q.sync_slots);
      if q.sync_slots[m] > asked_at - overdue_ms then
        slot := greatest(slot, q.sync_from, q.sync_slots[m - share + 1] + window_ms);
        if is_busy then
          slot := greatest(slot, q.slots[n] + window_ms / per_window - busy_credit_ms);
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
      slots[i] := slot;
      q.slots := q.slots || slot;
      if user_slots is not null then
        user_slots := user_slots || slot;
      end if;
      if is_sync then
        q.sync_slots := q.sync_slots[greatest(m - 3, 1):] || slot;
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
create or replace function quota_block(p_key text, p_ms float8, p_reason text, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
  until_ms float8;
  -- More than so many calls within the last while: a slowed key allows two in a second.
  slowed_per_window constant integer := 2;
  lately_ms constant float8 := 1500;
  remembered_ms constant float8 := 600000;
  suspected_ms constant float8 := 3600000;
  q quota_windows;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  until_ms := now_ms + p_ms;
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
      slots = array(select s from unnest(w.slots) s where s <= now_ms order by s),
      sync_slots = array(select s from unnest(w.sync_slots) s where s <= now_ms order by s),
      sync_calls = w.sync_calls - (select count(*) from unnest(w.sync_slots) s where s > now_ms),
      client_calls = w.client_calls - (
        (select count(*) from unnest(w.slots) s where s > now_ms)
        - (select count(*) from unnest(w.sync_slots) s where s > now_ms))
  where w.key = p_key;
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, p_reason, to_timestamp(now_ms / 1000), to_timestamp(until_ms / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
end $$;

-- quota_forget(key, now): drops what is kept of a key. Its window stays while calls of the last second
-- or a block still count: clients may go on asking for the base through the proxy.
create or replace function quota_forget(p_key text, p_now float8 default null) returns void
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

-- The functions as they were; the files before this one say why.
drop function quota_take;
create function quota_take(
  p_key text, p_kind text, p_share integer, p_within float8[], p_back float8[] default '{}',
  p_now float8 default null,
  out asked_at float8, out slots float8[], out next_at float8)
language plpgsql as $$
declare
  window_ms constant float8 := 1025;
  per_window constant integer := 5;
  quiet_credit_ms constant float8 := 1025;
  busy_credit_ms constant float8 := 10;
  busy_ms constant float8 := 5000;
  overdue_ms constant float8 := 6900;
  count_every_ms constant float8 := 10000;
  q quota_windows;
  spacing_ms constant float8 := window_ms / p_share;
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
  asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  select * into q from quota_windows w where w.key = p_key;
  if not found then
    q := quota_open(p_key, asked_at);
  end if;

  if q.slots[cardinality(q.slots)] > asked_at + 5000 then
    q.slots := '{}';
    q.sync_slots := '{}';
    q.sync_from := 0;
    q.client_at := 0;
    q.blocked_until := asked_at + window_ms;
  end if;
  if p_now is null then
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
  for i in 1 .. cardinality(p_within) + 1 loop
    n := cardinality(q.slots);
    slot := greatest(asked_at, q.blocked_until, q.slots[n], q.slots[n - per_window + 1] + window_ms);
    reach := p_within[i];
    if is_sync then
      m := cardinality(q.sync_slots);
      if q.sync_slots[m] > asked_at - overdue_ms then
        slot := greatest(slot, q.sync_from, q.sync_slots[m - p_share + 1] + window_ms);
        if is_busy then
          slot := greatest(slot, q.slots[n] + window_ms / per_window - busy_credit_ms);
        end if;
      else
        reach := reach + 2 * window_ms;
      end if;
    end if;
    if slot - asked_at <= reach then
      slots[i] := slot;
      q.slots := q.slots || slot;
      if is_sync then
        q.sync_slots := q.sync_slots[greatest(m - 3, 1):] || slot;
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
  end if;
end $$;

create or replace function quota_block(p_key text, p_ms float8, p_reason text, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
  until_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  until_ms := now_ms + p_ms;
  if not exists (select from quota_windows w where w.key = p_key) then
    perform quota_open(p_key, now_ms);
  end if;
  update quota_windows w
  set blocked_until = greatest(w.blocked_until, until_ms),
      slots = array(select s from unnest(w.slots) s where s <= now_ms order by s),
      sync_slots = array(select s from unnest(w.sync_slots) s where s <= now_ms order by s),
      sync_calls = w.sync_calls - (select count(*) from unnest(w.sync_slots) s where s > now_ms),
      client_calls = w.client_calls - (
        (select count(*) from unnest(w.slots) s where s > now_ms)
        - (select count(*) from unnest(w.sync_slots) s where s > now_ms))
  where w.key = p_key;
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, p_reason, to_timestamp(now_ms / 1000), to_timestamp(until_ms / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
end $$;

create or replace function quota_forget(p_key text, p_now float8 default null) returns void
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
end $$;

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
  insert into quota_windows (key, blocked_until, counted_from)
  values (p_key, shut_until, p_now)
  returning * into q;
  return q;
end $$;

drop function quota_leave, quota_hasten, quota_slow, quota_user_place, quota_user_slots;
alter table quota_windows drop column slow_until, drop column refused_at;
drop table quota_users, quota_slowed, quota_kinds;
alter table bases drop column workspace_id, drop column rests_until, drop column source_user_id;
drop table workspaces;
