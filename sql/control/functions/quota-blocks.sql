-- Handles refusals of the source, and keys that it throttles.

-- quota_block(key, limits, ms, reason, now, own): pauses all calls of the key for `ms`. Reservations until then are void:
-- their holders check blocked_until before they send, and those calls are not counted.
-- If the source refuses calls although no more were sent than it allows, the cause is one of these:
-- - calls took longer to reach it than their margins: the margins of the key are widened, for hours;
-- - it has throttled the key, or somebody else asks for the same base: after the third refusal within ten minutes the
--   key keeps to two calls a second, for an hour, and for another hour if the first refusal after that comes at once.
--   A refusal counts only if the source had not served more calls before it than a throttled key may send: more calls
--   served since the last pause show that the key is not throttled, and the count starts again;
-- - the user's limit over all keys. Only what is known of the user shows this, because others may ask for the same base: the
--   user's calls came near fifty in a second, or another key of the user was refused within the same second. The latter
--   counts for a key without another refusal in the last ten minutes: two bases that others ask for, too, would otherwise
--   stop all again after each common pause. Then all keys of the user pause, and none of the above is concluded.
-- `own` is false for a refusal of a client's key, which may be due to that client's own limit: then there is a pause
-- only if the base was asked at least three times in the last window and a half, and nothing else follows. Returns
-- whether there is a pause.
-- A key is not throttled for refusals if every account that has the base connected says that its plan has no cap.
create or replace function quota_block(
  p_key text, p_limits source_limits, p_ms float8, p_reason text, p_now float8 default null,
  p_own boolean default true) returns boolean
language plpgsql as $$
declare
  now_ms float8;
  until_ms float8;
  begun_ms float8;
  lately integer;
  -- More calls than this lately are more than a throttled key may send: two in a second.
  throttled_per_window constant integer := p_limits.throttled_per_window;
  per_window constant integer := p_limits.per_window;
  -- Reservations that end within this time may have been used: their windows have begun.
  most_margin_ms constant float8 := 400;
  usual_margin_ms constant float8 := 100;
  lately_ms constant float8 := 1.5 * p_limits.window_ms;
  remembered_ms constant float8 := 600000;
  near_user_limit constant integer := p_limits.per_user * 9 / 10;
  suspected_ms constant float8 := 3600000;
  -- Calls that may be sent at full rate before a refusal is known: four windows.
  unanswered_calls constant integer := 4 * p_limits.per_window;
  -- A widening doubles the previous one and adds this.
  widen_ms constant float8 := 30;
  most_widened_ms constant float8 := 200;
  q quota_windows;
  u quota_users;
  is_users boolean := false;
  calls bigint;
  is_served_faster boolean;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  perform nextval('quota_revocations');
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  until_ms := now_ms + p_ms;
  begun_ms := now_ms + most_margin_ms;
  if not exists (select from quota_windows w where w.key = p_key) then
    perform quota_open(p_key, now_ms);
  end if;
  select * into q from quota_windows w where w.key = p_key;
  lately := (select count(*) from unnest(q.reservations) s where s between now_ms - lately_ms and now_ms + usual_margin_ms);
  if not p_own and lately <= throttled_per_window then
    return false;
  end if;
  if p_own and p_reason = 'rate_limited' and q.blocked_until <= now_ms and q.throttled_until <= now_ms
    and q.user_id is not null
  then
    -- Locks the user: of two refusals in one second, the later one sees the earlier.
    u := quota_user(q.user_id);
    is_users := near_user_limit <= (
        select max(n) from (
          select count(*) over (order by s range between p_limits.window_ms preceding and current row) as n
          from unnest(u.reservations) s where s between now_ms - lately_ms and now_ms + usual_margin_ms) w)
      or exists (
        select from quota_windows w join quota_blocks b using (key)
        where w.user_id = q.user_id and w.key <> p_key and b.reason = 'rate_limited'
          and b.blocked_at > to_timestamp((now_ms - p_limits.window_ms) / 1000))
      and not exists (
        select from quota_blocks b
        where b.key = p_key and b.reason = 'rate_limited'
          and b.blocked_at > to_timestamp((now_ms - remembered_ms) / 1000));
    if is_users then
      update quota_users o set blocked_until = greatest(o.blocked_until, until_ms) where o.id = u.id;
    end if;
  end if;
  if p_own and p_reason = 'rate_limited' and q.blocked_until <= now_ms and q.throttled_until <= now_ms
    and not is_users and lately > throttled_per_window
  then
    if lately >= per_window then
      update quota_windows w
      set widened_ms = least(most_widened_ms, widen_ms + 2 * quota_widened(w.widened_ms, w.widened_at, now_ms)),
          widened_at = now_ms
      where w.key = p_key;
    end if;
    if not coalesce((
      select bool_and(coalesce(w.plan = any (p_limits.uncapped_plans), false))
      from bases b left join workspaces w on w.id = b.workspace_id
      where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2)
        and b.state <> 'deleting'), false)
    then
      calls := q.sync_calls + q.client_calls
        + (select coalesce(sum(c.sync + c.client), 0) from quota_calls c where c.key = p_key);
      is_served_faster := calls - q.calls_at_refusal
        > unanswered_calls + throttled_per_window * (now_ms - q.blocked_until) / p_limits.window_ms;
      if is_served_faster then
        q.refused_at := '{}';
      end if;
      q.refused_at := array(select r from unnest(q.refused_at) r where r > now_ms - remembered_ms order by r) || now_ms;
      if cardinality(q.refused_at) >= 3 or (q.throttled_until > now_ms - remembered_ms and not is_served_faster) then
        perform quota_throttle(p_key, now_ms + suspected_ms, false, now_ms);
        q.refused_at := '{}';
      end if;
      update quota_windows w set refused_at = q.refused_at, calls_at_refusal = calls where w.key = p_key;
    end if;
  end if;
  update quota_windows w
  set blocked_until = greatest(w.blocked_until, until_ms),
      reservations = array(select s from unnest(w.reservations) s where s <= begun_ms or s > until_ms order by s),
      sync_reservations = array(
        select s from unnest(w.sync_reservations) s where s <= begun_ms or s > until_ms order by s),
      unproven_reservations = array(
        select s from unnest(w.unproven_reservations) s where s <= begun_ms or s > until_ms order by s),
      sync_calls = w.sync_calls - (
        select count(*) from unnest(w.sync_reservations) s where s > begun_ms and s <= until_ms),
      client_calls = w.client_calls - (
        (select count(*) from unnest(w.reservations) s where s > begun_ms and s <= until_ms)
        - (select count(*) from unnest(w.sync_reservations) s where s > begun_ms and s <= until_ms)
        - (select count(*) from unnest(w.unproven_reservations) s where s > begun_ms and s <= until_ms))
  where w.key = p_key;
  insert into quota_blocks as b (key, reason, blocked_at, blocked_until)
  values (p_key, p_reason, to_timestamp(now_ms / 1000), to_timestamp(until_ms / 1000))
  on conflict (key) do update
    set reason = excluded.reason, blocked_at = excluded.blocked_at, blocked_until = excluded.blocked_until
    where b.blocked_until < excluded.blocked_until;
  return true;
end $$;

-- quota_throttle(key, until, is_certain, now, account): limits the key to two calls a second until then (ms since
-- 1970). If concluded from the source's refusals (account ''): for everyone. If based on what an account says of its
-- plan: only while no other account has the base connected, because one account's claim must not slow another.
create or replace function quota_throttle(
  p_key text, p_until float8, p_is_certain boolean, p_now float8 default null, p_account text default '') returns void
language plpgsql as $$
declare
  now_ms float8;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  insert into quota_throttled as s (key, account_id, since, until, is_certain)
  values (p_key, p_account, to_timestamp(now_ms / 1000), to_timestamp(p_until / 1000), p_is_certain)
  on conflict (key, account_id) do update
    set since = case when s.until < excluded.since then excluded.since else s.since end,
        until = excluded.until, is_certain = excluded.is_certain;
  if p_account = '' then
    update quota_windows w set throttled_until = p_until where w.key = p_key;
  else
    update quota_windows w set claimed_until = p_until, claimed_by = p_account where w.key = p_key;
  end if;
end $$;

-- quota_unthrottle(key, account): ends the throttling by the account's plan, and that by the source's refusals if no
-- other account has the base connected. Without an account: all of it.
create or replace function quota_unthrottle(p_key text, p_account text default null) returns void
language plpgsql as $$
declare
  is_sole boolean := p_account is null or quota_is_sole(p_key, p_account);
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  delete from quota_throttled s
  where s.key = p_key and (p_account is null or s.account_id = p_account or (s.account_id = '' and is_sole));
  update quota_windows w set
    throttled_until = case when is_sole then 0 else w.throttled_until end,
    refused_at = case when is_sole then '{}' else w.refused_at end,
    claimed_until = case when p_account is null or w.claimed_by = p_account then 0 else w.claimed_until end
  where w.key = p_key;
end $$;

-- quota_is_sole(key, account): returns whether no other account has the base connected.
create or replace function quota_is_sole(p_key text, p_account text) returns boolean
language sql stable as $$
  select not exists (
    select from bases b
    where b.platform = split_part(p_key, ':', 1) and b.source_base_id = split_part(p_key, ':', 2)
      and b.account_id <> p_account and b.state <> 'deleting');
$$;
