-- Manages the row of a key: its creation, its counters, its widening.

-- quota_open(key, now): creates the key's row and returns it. A key that was counted before and has no row lost it in a
-- crash: other processes may have granted calls by themselves until they see the server again (within a second), so the
-- key stays closed for that second and the longest window after it.
create or replace function quota_open(p_key text, p_now float8) returns quota_windows
language plpgsql as $$
declare
  q quota_windows;
  v_blocked_until float8 := 0;
begin
  if exists (select from quota_calls c where c.key = p_key) then
    v_blocked_until := greatest(
      p_now + 2350,
      (select extract(epoch from b.blocked_until) * 1000 from quota_blocks b
       where b.key = p_key and b.reason = 'rate_limited'));
  end if;
  perform quota_count(p_key, p_now, 0, 0);
  with claim as (
    select s.until, s.account_id from quota_throttled s where s.key = p_key and s.account_id <> ''
    order by s.until desc limit 1)
  insert into quota_windows (key, blocked_until, counted_from, throttled_until, claimed_until, claimed_by)
  values (p_key, v_blocked_until, p_now, coalesce(
    (select extract(epoch from s.until) * 1000 from quota_throttled s where s.key = p_key and s.account_id = ''), 0),
    coalesce((select extract(epoch from c.until) * 1000 from claim c), 0), (select c.account_id from claim c))
  returning * into q;
  return q;
end $$;

-- quota_count(key, since, sync, client): adds calls to the month, the hour and the minute of `since`. Called once
-- a minute for a key in use, with the calls since the last time; also deletes minutes older than an hour.
create or replace function quota_count(p_key text, p_since float8, p_sync integer, p_client integer) returns void
language plpgsql as $$
begin
  insert into quota_calls as c (key, month, sync, client)
  values (p_key, date_trunc('month', to_timestamp(p_since / 1000) at time zone 'UTC'), p_sync, p_client)
  on conflict (key, month) do update set sync = c.sync + excluded.sync, client = c.client + excluded.client;
  insert into quota_minutes as m (key, minute, sync, client)
  select p_key, date_trunc('minute', to_timestamp(p_since / 1000)), p_sync, p_client
  where p_sync <> 0 or p_client <> 0
  on conflict (key, minute) do update set sync = m.sync + excluded.sync, client = m.client + excluded.client;
  insert into quota_days as d (key, day, sync, client)
  select p_key, at.day, array_fill(0, array[at.hour - 1]) || p_sync || array_fill(0, array[24 - at.hour]),
    array_fill(0, array[at.hour - 1]) || p_client || array_fill(0, array[24 - at.hour])
  from (select (to_timestamp(p_since / 1000) at time zone 'UTC')::date as day,
    extract(hour from to_timestamp(p_since / 1000) at time zone 'UTC')::int + 1 as hour) as at
  where p_sync <> 0 or p_client <> 0
  on conflict (key, day) do update set
    sync[extract(hour from to_timestamp(p_since / 1000) at time zone 'UTC')::int + 1] =
      d.sync[extract(hour from to_timestamp(p_since / 1000) at time zone 'UTC')::int + 1] + p_sync,
    client[extract(hour from to_timestamp(p_since / 1000) at time zone 'UTC')::int + 1] =
      d.client[extract(hour from to_timestamp(p_since / 1000) at time zone 'UTC')::int + 1] + p_client;
  delete from quota_minutes m
  where m.key = p_key and m.minute < to_timestamp(p_since / 1000) - interval '1 hour';
end $$;

-- quota_widened(ms, at, now): the remainder of a widening; half of it after an hour.
create or replace function quota_widened(p_ms float8, p_at float8, p_now float8) returns float8
language sql immutable as $$
  select case when p_ms <= 0 or p_now - p_at > 36000000 then 0
    else p_ms * power(2, -greatest(0, p_now - p_at) / 3600000) end;
$$;

-- quota_forget(key, window, now): deletes the data of a key. Its window row stays while calls of the last `window` ms
-- or a block still count: clients may still be asking for the base through the proxy.
create or replace function quota_forget(p_key text, p_window_ms float8, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  delete from quota_windows w
  where w.key = p_key and w.blocked_until <= now_ms
    and greatest(w.reservations[cardinality(w.reservations)], (select max(s) from unnest(w.standing) s), 0)
      <= now_ms - p_window_ms;
  update quota_windows w set sync_calls = 0, client_calls = 0, counted_from = now_ms where w.key = p_key;
  delete from quota_blocks b where b.key = p_key;
  delete from quota_calls c where c.key = p_key;
  delete from quota_kinds k where k.key = p_key;
  delete from quota_days d where d.key = p_key;
  delete from quota_callers c where c.key = p_key;
  delete from quota_throttled s where s.key = p_key;
end $$;
