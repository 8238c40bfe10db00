-- Handles refusals of the source, and keys that it throttles.

-- quota_pause(key, limits, ms, now): all permits of the key rest for `ms`. Their holders are told by quota_announce.
create or replace function quota_pause(p_key text, p_limits source_limits, p_ms float8, p_now float8) returns void
language plpgsql as $$
begin
  perform quota_open(p_key, p_limits.per_window, p_limits.throttled_per_window, p_now);
  update quota_keys k set blocked_until = greatest(k.blocked_until, p_now + p_ms) where k.key = p_key;
end $$;

-- quota_block(key, limits, ms, session, sent, own, now): pauses all requests of a key that the source has refused for `ms`. `sent`
-- is how many the process has sent in the last window and a half.
-- If the source refuses requests although no more were sent than it allows, the cause is one of these:
-- - it has throttled the key, or somebody else asks for the same base: after the third refusal within ten minutes the
--   key keeps to two requests a second, for an hour, and for another hour if the first refusal after that comes at once.
--   A refusal counts only if the source had not served more before it than a throttled key may send: more requests
--   served since the last pause show that the key is not throttled, and the count starts again;
-- - the user's limit over all keys. Only what is known of the user shows this, because others may ask for the same base: the
--   user's permits in use came near fifty, or another key of the user was refused within the same second. The latter
--   counts for a key without another refusal in the last ten minutes: two bases that others ask for, too, would otherwise
--   stop all again after each common pause. Then all keys of the user pause, and none of the above is concluded.
-- `own` is false for a refusal of a client's key, which may be due to that client's own limit: then there is a pause
-- only if the base was asked at least three times in the last window and a half, and nothing else follows. Returns
-- whether there is a pause.
create or replace function quota_block(
  p_key text, p_limits source_limits, p_ms float8, p_session text, p_sent integer, p_own boolean default true,
  p_now float8 default null)
returns boolean
language plpgsql as $$
declare
  now_ms float8;
  q quota_keys;
  lately integer;
begin
  perform quota_lock(p_key);
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  perform quota_open(p_key, p_limits.per_window, p_limits.throttled_per_window, now_ms);
  select * into q from quota_keys k where k.key = p_key;
  -- Those that other processes hold are in use: unused ones are returned.
  lately := p_sent + (select count(*) from quota_permits p where p.key = p_key and p.session <> p_session);
  if not p_own and lately <= p_limits.throttled_per_window then
    return false;
  end if;
  if p_own and q.blocked_until <= now_ms and quota_throttled_until(p_key) <= now_ms then
    if quota_is_users(q, p_limits, now_ms) then
      perform quota_lock(q.user_id);
      perform quota_pause(q.user_id, row(p_limits.window_ms, p_limits.per_user, null, p_limits.per_user, null)::source_limits,
        p_ms, now_ms);
      perform quota_announce(q.user_id);
    elsif lately > p_limits.throttled_per_window then
      perform quota_suspect(q, p_limits, now_ms);
    end if;
  end if;
  perform quota_pause(p_key, p_limits, p_ms, now_ms);
  perform quota_announce(p_key);
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, 'rate_limited', to_timestamp(now_ms / 1000), to_timestamp((now_ms + p_ms) / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
  return true;
end $$;

-- quota_is_users(key's row, limits, now): whether a refusal is due to the user's limit.
create or replace function quota_is_users(q quota_keys, p_limits source_limits, p_now float8) returns boolean
language sql as $$
  select q.user_id is not null and (
    (select count(*) from quota_permits p where p.key = q.user_id
      and (p.session is not null or p.rests_until > p_now - p_limits.window_ms / 2)) >= p_limits.per_user * 9 / 10
    or exists (
      select from quota_keys k join quota_blocks b using (key)
      where k.user_id = q.user_id and k.key <> q.key and b.reason = 'rate_limited'
        and b.blocked_at > to_timestamp((p_now - p_limits.window_ms) / 1000))
    and not exists (
      select from quota_blocks b
      where b.key = q.key and b.reason = 'rate_limited' and b.blocked_at > to_timestamp((p_now - 600000) / 1000)));
$$;

-- quota_suspect(key's row, limits, now): counts a refusal, and throttles the key after three. Not if every account that has the
-- base connected says that its plan has no cap.
create or replace function quota_suspect(q quota_keys, p_limits source_limits, p_now float8) returns void
language plpgsql as $$
declare
  remembered_ms constant float8 := 600000;
  suspected_ms constant float8 := 3600000;
  -- Requests that may be sent at full rate before a refusal is known: four windows.
  unanswered constant integer := 4 * p_limits.per_window;
  calls constant bigint := (select coalesce(sum(c.sync + c.client), 0) from quota_calls c where c.key = q.key);
  is_served_faster constant boolean := calls - q.calls_at_refusal
    > unanswered + p_limits.throttled_per_window * (p_now - q.blocked_until) / p_limits.window_ms;
  refusals float8[] := case when is_served_faster then '{}' else q.refused_at end;
begin
  if (select bool_and(coalesce(w.plan = any (p_limits.uncapped_plans), false))
    from bases b left join workspaces w on w.id = b.workspace_id
    where b.platform = split_part(q.key, ':', 1) and b.source_base_id = split_part(q.key, ':', 2)
      and b.state <> 'deleting')
  then
    return;
  end if;
  refusals := array(select r from unnest(refusals) r where r > p_now - remembered_ms order by r) || p_now;
  if cardinality(refusals) >= 3 or (quota_throttled_until(q.key) > p_now - remembered_ms and not is_served_faster) then
    perform quota_throttle(q.key, p_now + suspected_ms, false, p_now);
    refusals := '{}';
  end if;
  update quota_keys k set refused_at = refusals, calls_at_refusal = calls where k.key = q.key;
end $$;

-- quota_throttle(key, until, is_certain, now, account): limits the key to two calls a second until then (ms since
-- 1970). If concluded from the source's refusals (account ''): for everyone. If based on what an account says of its
-- plan: only while no other account has the base connected, because one account's claim must not slow another.
create or replace function quota_throttle(
  p_key text, p_until float8, p_is_certain boolean, p_now float8 default extract(epoch from clock_timestamp())::float8 * 1000,
  p_account text default '') returns void
language sql as $$
  select quota_lock(p_key);
  insert into quota_throttled as s (key, account_id, since, until, is_certain)
  values (p_key, p_account, to_timestamp(p_now / 1000), to_timestamp(p_until / 1000), p_is_certain)
  on conflict (key, account_id) do update
    set since = case when s.until < excluded.since then excluded.since else s.since end,
        until = excluded.until, is_certain = excluded.is_certain;
  select quota_announce(p_key);
$$;

-- quota_unthrottle(key, account): ends the throttling by the account's plan, and that by the source's refusals if no
-- other account has the base connected.
create or replace function quota_unthrottle(p_key text, p_account text) returns void
language sql as $$
  select quota_lock(p_key);
  update quota_keys k set refused_at = '{}' where k.key = p_key and quota_is_sole(p_key, p_account);
  delete from quota_throttled s
  where s.key = p_key and (s.account_id = p_account or (s.account_id = '' and quota_is_sole(p_key, p_account)));
  select quota_announce(p_key);
$$;

-- quota_throttled_until(key): until when the key has fewer permits, because the source refused requests, or because the only
-- account that has the base says so of its plan.
create or replace function quota_throttled_until(p_key text) returns float8
language sql stable as $$
  select coalesce(max(extract(epoch from s.until)::float8 * 1000), 0) from quota_throttled s
  where s.key = p_key and (s.account_id = '' or quota_is_sole(p_key, s.account_id));
$$;

-- quota_is_sole(key, account): returns whether no other account has the base connected.
create or replace function quota_is_sole(p_key text, p_account text) returns boolean
language sql stable as $$
  select not exists (
    select from bases b
    where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2)
      and b.account_id <> p_account and b.state <> 'deleting');
$$;

-- quota_forget(key): deletes the data of a key. Its permits stay: clients may still be asking for the base through the proxy.
create or replace function quota_forget(p_key text) returns void
language sql as $$
  select quota_lock(p_key);
  delete from quota_blocks b where b.key = p_key;
  delete from quota_calls c where c.key = p_key;
  delete from quota_kinds k where k.key = p_key;
  delete from quota_days d where d.key = p_key;
  delete from quota_callers c where c.key = p_key;
  delete from quota_throttled s where s.key = p_key;
$$;
