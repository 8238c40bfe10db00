-- Heartbeats of proxies.

-- quota_heartbeat(id, seen, per_window, now): records that a proxy was alive at `seen`, by its own estimate of this
-- server's time, so that a delayed message does not count for more. `per_window` is how many calls every source allows
-- in a window.
--
-- Returns the proxy's share: half of all calls but one with up to two proxies, one call with more, so that up to four
-- silent proxies leave one call of five to all other processes.
create or replace function quota_heartbeat(
  p_id text, p_seen float8, p_per_window integer, p_now float8 default null) returns integer
language plpgsql as $$
declare
  -- The same as in quota_silent.
  remembered_ms constant float8 := 900000;
  now_ms float8 := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  others integer := (
    select count(*) from quota_proxies p where p.id <> p_id and p.seen_at > now_ms - remembered_ms);
  own_share integer := case when others > 1 then 1 else greatest(1, (p_per_window - 1) / 2) end;
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into quota_proxies (id, share, seen_at) values (p_id, own_share, least(p_seen, now_ms))
  on conflict (id) do update set share = excluded.share, seen_at = excluded.seen_at;
  return own_share;
end $$;

-- quota_silent(now): the calls a second that are left to silent proxies, together. See core/limiter/heartbeat.ts.
create or replace function quota_silent(p_now float8) returns integer
language plpgsql stable as $$
declare
  silent_ms constant float8 := 1500;
  -- The same as in quota_heartbeat.
  remembered_ms constant float8 := 900000;
begin
  return (
    select coalesce(sum(p.share), 0) from quota_proxies p
    where p.seen_at between p_now - remembered_ms and p_now - silent_ms);
end $$;
