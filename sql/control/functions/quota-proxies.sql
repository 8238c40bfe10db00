-- Heartbeats of proxies.

-- quota_heartbeat(id, seen, per_window, now): a proxy was there at `seen`, by its own idea of this server's time, so that a
-- message that was long on its way does not count for more. `per_window` is how many calls every source allows in a window.
-- Returns the proxy's share: with up to two proxies half of all but one call, with more one call, so that up to four silent
-- proxies leave one call of five to all other processes.
create or replace function quota_heartbeat(
  p_id text, p_seen float8, p_per_window integer, p_now float8 default null) returns integer
language plpgsql as $$
declare
  -- As long as quota_acquire counts on a silent one.
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
