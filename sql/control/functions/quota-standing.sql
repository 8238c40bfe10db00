-- Makes standing reservations: for a client's next request, before it comes.

-- quota_acquire_standing(window_ms, per_window, keys, used, margins, wanted, now): records which standing reservations of several keys
-- were used, and makes new ones. The arrays have one element per call:
--   key
--   used         ends of those that were used before this call. As text, because the lengths differ
--   margin       as for quota_acquire_all
--   wanted       whether to make one
-- `now` is a test's clock. Returns a row for each call, in order: asked_at (now); standing: the end of the new one, which also
-- identifies it: it may be used once, from standing_ms and the margin before that time on, until the margin before that
-- time; null if there is none; and margin.
--
-- I4. As long as a standing reservation counts (until its window is past, or until its use is recorded), every other
-- reservation is made with one place less in each window, so it may be used at any time. It is recorded as used by now:
-- its request has left before this call.
-- One that is not used takes a place from the others for two seconds. So it is made only for a key that is not busy (it
-- begins within reach_ms), whose limit is the usual one, and for which the limit per user does not matter, and not if a sync
-- that is running would get less than without it; two of a key are the most. A crash of this server may lose it: it is past, with its window, when
-- reservations are made again (2350 ms after the start).
-- It counts in the month once it is used. The first request of each minute gets an ordinary reservation:
-- quota_acquire_all stores the counts. It is returned like others, with quota_acquire_all.
create or replace function quota_acquire_standing(
  p_window_ms float8, p_per_window integer, p_keys text[], p_used text[], p_margins float8[], p_wanted boolean[],
  p_now float8 default null)
returns table (asked_at float8, standing float8, margin float8)
language plpgsql as $$
declare
  -- The same as in quota_acquire_all.
  least_margin_ms constant float8 := 20;
  most_drop_ms constant float8 := 250;
  standing_ms constant float8 := 600;
  minute_ms constant float8 := 60000;
  started_at constant float8 :=
    case when p_now is null then extract(epoch from pg_postmaster_start_time()) * 1000 + 2350 else 0 end;
  most constant integer := 2;
  -- A process or network that varies more than this gets none.
  most_margin_ms constant float8 := 200;
  reach_ms constant float8 := 150;
  silent integer;
  q quota_windows;
  used float8[];
  begins_at float8;
  made float8;
  phase_ms integer;
  n integer;
begin
  perform pg_advisory_xact_lock(l.id) from (
    select distinct hashtextextended('quota:' || k, 0) as id from unnest(p_keys) k order by id) l;
  silent := quota_silent(coalesce(p_now, extract(epoch from clock_timestamp()) * 1000));

  for i in 1 .. cardinality(p_keys) loop
    standing := null;
    used := p_used[i];
    select * into q from quota_windows w where w.key = p_keys[i];
    asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
    margin := greatest(p_margins[i], least_margin_ms)
      + case when q.widened_ms > 0 then quota_widened(q.widened_ms, q.widened_at, asked_at) else 0 end;
    q.standing := array(select s from unnest(q.standing) s where s > asked_at - p_window_ms - most_drop_ms);
    -- Those that no longer count were used long ago: the process was suspended.
    used := array(select s from unnest(q.standing) s where s = any (used));
    q.standing := array(select s from unnest(q.standing) s where s <> all (used));
    q.reservations := array(
      select s from (
        select s from unnest(q.reservations) s where s > asked_at - p_window_ms - most_drop_ms
        union all
        select least(s, asked_at + margin) from unnest(used) s) taken
      order by s);

    n := cardinality(q.reservations);
    begins_at := greatest(asked_at, q.blocked_until, started_at,
      q.reservations[n - (p_per_window - cardinality(q.standing)) + 1] + p_window_ms);
    made := begins_at + standing_ms + margin;
    phase_ms := hashtext(p_keys[i]) & 8191;
    if p_wanted[i] and cardinality(q.standing) < most and begins_at <= asked_at + reach_ms and margin <= most_margin_ms
      and silent = 0 and asked_at >= greatest(q.throttled_until, q.claimed_until) and q.user_id is null
      -- While a sync is running: one more place is free.
      and (coalesce(q.sync_reservations[cardinality(q.sync_reservations)], 0) <= asked_at - p_window_ms
        or cardinality(q.standing) + (select count(*) from unnest(q.reservations) s where s > asked_at - p_window_ms)
          <= p_per_window - 2)
      -- After a pause, two would have the same beginning.
      and made <> all (q.standing)
      and floor((asked_at - phase_ms) / minute_ms) <= floor((q.counted_from - phase_ms) / minute_ms)
    then
      standing := made;
      q.standing := q.standing || made;
    end if;
    if standing is not null or used <> '{}' then
      update quota_windows w
      set reservations = q.reservations, standing = q.standing, client_at = asked_at,
        client_calls = q.client_calls + cardinality(used)
      where w.key = p_keys[i];
    end if;
    return next;
  end loop;
end $$;
