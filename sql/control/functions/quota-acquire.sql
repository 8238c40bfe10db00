-- Grants, returns and corrects reservations.

-- quota_acquire_all(window_ms, per_window, throttled_per_window, per_user, keys, kinds, shares, within, back, users, margins,
-- owns, ahead, now): reserves calls for several keys, and returns when each may be sent. Most of the cost is that of the
-- transaction. The limits are separate arguments, because a composite one is parsed from text. The arrays have one element per call:
--   key
--   kind, share  'client'; 'sync', 'live' or 'named' with sync's share of requests a second (3 or 5); or 'unproven', a
--                client whose key the source has not accepted for the base
--   within       one element per request wanted: how many ms from now its reservation may begin at the latest. As text,
--                because the lengths differ
--   back         earlier reservations that were not used: they are released. As text
--   user         for sync, live, named: the source's user, if that user's limit over all bases (50 a second) may
--                matter; else null
--   margin       how much later than others the requests may reach the source, by delays of the process and the network, ms
--   own          for client: the request has a key of that user, as far as is known
--   ahead        for sync: how many reservations to make in advance, besides those wanted
-- `now` is a test's clock; otherwise the server's, read after the locks, so that reservations are in order.
-- Returns a row for each call, in order: asked_at (now); reservations (one per request wanted: the time by which the request
-- has reached the source, which also identifies it; null if there is none within reach; those in advance come last); margin:
-- the request may be sent this long before that time; and next_at: the earliest time that one more request of this kind could
-- get at present; for a 'live' or 'named' one, when to ask again.
--
-- I4. From the end of the first reservation of five to the beginning of the sixth at least the window passes: a second,
-- and more if the path of the process to the source is new (docs/adr/6-connected-reservations.md). A
-- reservation never ends before an existing one, so clients keep their order, and sync, which asks for now and not for
-- later, gets only what no client has asked for.
-- Sync's reservations are spaced evenly over its share; otherwise a client would find five of them taken at once and
-- wait a second (with even spacing 95 of 100 clients waited under 210 ms; 260 to 450 ms when sync kept only its own
-- spacing).
-- Live calls are sync calls for a change that a person has made and waits to see. They get what any sync call gets; if
-- clients leave nothing, they get one reservation in five, at the end of the clients' queue. Named calls are live calls
-- that fetch records that a read of the feed has just named: one need not wait for its second after that read, and the
-- next read waits for two. So there are never more than two live calls beyond one a second.
-- Clients that have to wait while a sync runs are spaced evenly, too: five at once would leave a live call nothing for
-- a second. Not if they wait only for a call of sync that was granted slightly ahead of its time.
-- Unproven calls come last: one in 10 s while clients ask; otherwise five in 25 s, and only while the window is half
-- empty. If none was granted for 10 s, one joins the clients' queue, so that a new client of a busy base is not shut
-- out. They are not counted here: see quota_served.
-- A key that the source has throttled has two calls a second, and sync its part of those. The share of silent proxies
-- is left to them for a quarter of an hour: from here, a proxy that was killed and did not come back looks the same as
-- one that still grants its share.
-- Of a user's fifty calls a second sync leaves ten to clients. Clients with keys other than the user's own are counted,
-- because they may be the user's, but are not delayed, because they may not be.
-- Advance reservations are for a sync that uses its whole share: one call serves several requests. They are evenly
-- spaced, and only for a key whose requests are all those of one sync: no client or live call has asked lately, and its
-- user's limit does not matter. Clients need not wait for them: a client's or live call revokes those that begin more
-- than firm_ms from now, and takes the next place. Before a process uses one, it must have heard, firm_ms before its
-- beginning or later, that nothing has been revoked since it was made: the value of the sequence quota_revocations, read
-- after the clock. That value grows before the clock of a revocation is read, and is seen at once, before the commit.
-- A standing reservation (quota-standing.sql) may be used at any time: as long as it counts, all others have one place less.
-- Locks are taken in one order, all keys' and then all users', so that no two statements deadlock.
--
-- Each expression costs 1 to 3 µs in a statement that runs it for the first time, because PL/pgSQL prepares it for each
-- transaction, and a fifth of a µs for each further key. What a call of sync usually runs is therefore short, and constants
-- are evaluated once.
create or replace function quota_acquire_all(
  p_window_ms float8, p_per_window integer, p_throttled_per_window integer, p_per_user integer,
  p_keys text[], p_kinds text[], p_shares integer[], p_within text[], p_back text[], p_users text[],
  p_margins float8[], p_owns boolean[], p_ahead integer[], p_now float8 default null)
returns table (asked_at float8, reservations float8[], next_at float8, margin float8)
language plpgsql as $$
declare
  -- The minimum margin of a reservation: for the clocks, and for a network that varies more than measured.
  least_margin_ms constant float8 := 20;
  most_margin_ms constant float8 := 400;
  -- How much longer than others the window of a process may be whose path to the source is new: reservations are
  -- remembered for it.
  most_drop_ms constant float8 := 250;
  -- The rest, a fifth, is left to clients.
  sync_per_user constant integer := p_per_user * 4 / 5;
  -- How much earlier than its even spacing sync may send, to make up for a slow page or a late start.
  quiet_credit_ms constant float8 := p_window_ms + 25;
  busy_credit_ms constant float8 := 10;
  -- How far ahead of its time sync's call may be granted.
  sync_reach_ms constant float8 := 30;
  -- How long a standing reservation may wait for its request. core/limiter/backend.ts and quota_acquire_standing have the same.
  standing_ms constant float8 := 600;
  -- A client counts as active for this long after its last request.
  busy_ms constant float8 := 5000;
  -- How far ahead an advance reservation may begin, and for how long before that it can no longer be revoked.
  -- core/limiter/backend.ts has the latter, too.
  advance_ms constant float8 := 1000;
  firm_ms constant float8 := 60;
  -- Their smallest spacing, as a part of the even one: they make up for one that was late.
  least_spacing constant float8 := 0.8;
  -- Together with the second between two tries of a sync and the two windows of its reach: one call in 10 s.
  overdue_ms constant float8 := 6900;
  -- Calls are counted once a minute.
  minute_ms constant float8 := 60000;
  -- Unproven calls: five in the first period, or one in the second while a client is active.
  unproven_window_ms constant float8 := 25000;
  unproven_pause_ms constant float8 := 10000;
  -- While the server was down, processes granted calls by themselves: see quota_open.
  started_at constant float8 :=
    case when p_now is null then extract(epoch from pg_postmaster_start_time()) * 1000 + 2350 else 0 end;
  silent integer;
  v_key text;
  kind text;
  within float8[];
  q quota_windows;
  per_window integer;
  share integer;
  -- A window and the margin: evenly spaced calls are spread over this.
  pace_ms float8;
  spacing_ms float8;
  u quota_users;
  is_limited_by_user boolean;
  credit_ms float8;
  is_busy boolean;
  is_sync boolean;
  -- the end of the clients' queue, and when live calls are due their one reservation in five again
  queue_end float8;
  turn_at float8;
  turn_ms float8;
  is_changed boolean;
  wanted integer;
  ahead integer;
  revoked float8[];
  back float8[];
  is_of_sync boolean;
  reservation float8;
  reach float8;
  reach_ms float8;
  phase_ms integer;
  n integer;
  m integer;
begin
  if cardinality(p_keys) = 1 then
    -- A condition is evaluated without a query, which `perform` would run.
    if pg_advisory_xact_lock(hashtextextended('quota:' || p_keys[1], 0)) is null then
      null;
    end if;
  else
    perform pg_advisory_xact_lock(l.id) from (
      select distinct hashtextextended('quota:' || k, 0) as id from unnest(p_keys) k order by id) l;
    -- The limit keeps the planner from reading the whole table.
    perform quota_user(l.id) from (
      select distinct id from (
        select unnest(p_users) as id
        union all
        select w.user_id from unnest(p_keys) k,
          lateral (select o.user_id from quota_windows o where o.key = k limit 1) w) ids
      where id is not null order by id) l;
  end if;
  silent := quota_silent(coalesce(p_now, extract(epoch from clock_timestamp()) * 1000));

  for i in 1 .. cardinality(p_keys) loop
    v_key := p_keys[i];
    kind := p_kinds[i];
    within := p_within[i];
    is_sync := kind in ('sync', 'live', 'named');
    wanted := cardinality(within);
    is_changed := false;
    select * into q from quota_windows w where w.key = v_key;
    if not found then
      q := quota_open(v_key, coalesce(p_now, extract(epoch from clock_timestamp()) * 1000));
    end if;
    if is_sync and q.user_id is distinct from p_users[i] then
      q.user_id := p_users[i];
      is_changed := true;
    end if;
    is_limited_by_user := q.user_id is not null and (is_sync or p_owns[i]) and kind <> 'unproven';
    u := null;
    if q.user_id is not null and kind <> 'unproven' then
      u := quota_user(q.user_id);
    end if;
    asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);

    margin := least(most_margin_ms, greatest(p_margins[i], least_margin_ms)
      + case when q.widened_ms > 0 then quota_widened(q.widened_ms, q.widened_at, asked_at) else 0 end);
    per_window := p_per_window;
    if asked_at < q.throttled_until
      or (asked_at < q.claimed_until and quota_is_sole(v_key, q.claimed_by))
    then
      per_window := p_throttled_per_window;
    end if;
    share := greatest(1, p_shares[i] * per_window / p_per_window);
    per_window := greatest(1, per_window - silent);
    if q.standing <> '{}' then
      q.standing := array(select s from unnest(q.standing) s where s > asked_at - p_window_ms - most_drop_ms);
      per_window := greatest(1, per_window - cardinality(q.standing));
    end if;
    share := least(share, per_window);
    pace_ms := p_window_ms + margin;
    spacing_ms := greatest(p_window_ms / share, pace_ms / per_window);

    if q.reservations[cardinality(q.reservations)] > asked_at + 5000 then
      -- No reservation is granted this far ahead, so the clock was set back.
      q.reservations := '{}';
      q.sync_reservations := '{}';
      q.sync_from := 0;
      q.unproven_reservations := '{}';
      q.client_at := 0;
      q.blocked_until := asked_at + p_window_ms + margin + case when q.standing = '{}' then 0 else standing_ms end;
      q.standing := '{}';
    end if;
    if q.blocked_until < started_at then
      q.blocked_until := started_at;
    end if;
    -- Some seconds into the minute, for each key others.
    phase_ms := hashtext(v_key) & 8191;
    if floor((asked_at - phase_ms) / minute_ms) > floor((q.counted_from - phase_ms) / minute_ms) and wanted > 0
    then
      perform set_config('synchronous_commit', 'off', true);
      perform quota_count(v_key, q.counted_from, q.sync_calls, q.client_calls);
      q.counted_from := asked_at;
      q.sync_calls := 0;
      q.client_calls := 0;
      is_changed := true;
    end if;
    while q.reservations[1] <= asked_at - p_window_ms - most_drop_ms loop
      q.reservations := q.reservations[2:];
    end loop;
    if u.id is not null then
      u.reservations := array(
        select s from unnest(u.reservations) s where s between asked_at - p_window_ms - most_drop_ms and asked_at + 5000);
    end if;

    if kind = 'client' and wanted > 0 then
      q.client_at := asked_at;
      is_changed := true;
    elsif kind <> 'sync' and is_sync and wanted > 0 then
      q.live_at := asked_at;
      is_changed := true;
    end if;
    is_busy := asked_at - q.client_at < busy_ms;

    revoked := '{}';
    if kind in ('client', 'live', 'named') and wanted > 0
      and q.sync_reservations[cardinality(q.sync_reservations)] >= greatest(q.advance_from, asked_at + firm_ms + q.advance_margin)
    then
      perform nextval('quota_revocations');
      asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
      revoked := array(
        select s from unnest(q.sync_reservations) s where s >= q.advance_from and s > asked_at + firm_ms + q.advance_margin);
      q.revoked := array(select s from unnest(q.revoked) s where s > asked_at - p_window_ms - most_drop_ms) || revoked;
    end if;
    if p_back[i] <> '{}' or revoked <> '{}' then
      back := p_back[i]::float8[] || revoked;
      for j in 1 .. cardinality(back) loop
        reservation := back[j];
        is_of_sync := is_sync or j > cardinality(back) - cardinality(revoked);
        m := array_position(q.revoked, reservation);
        if m is not null and is_sync and j <= cardinality(back) - cardinality(revoked) then
          -- Its process has heard that it was revoked, and returns it: its place may be another's by now.
          q.revoked := q.revoked[:m - 1] || q.revoked[m + 1:];
          is_changed := true;
          continue;
        end if;
        n := array_position(q.reservations, reservation);
        if n is null and reservation = any (q.standing) then
          q.standing := array_remove(q.standing, reservation);
          is_changed := true;
          continue;
        end if;
        if n is null then
          -- A suspended process returns it late: it no longer limits anything, but it was counted and not used.
          if reservation <= asked_at - p_window_ms then
            q.sync_calls := q.sync_calls - is_of_sync::integer;
            q.client_calls := q.client_calls - (kind = 'client')::integer;
            is_changed := true;
          end if;
          continue;
        end if;
        q.reservations := q.reservations[:n - 1] || q.reservations[n + 1:];
        -- Other keys may have a reservation at the same time: remove one, not all.
        m := array_position(u.reservations, reservation);
        if m is not null then
          u.reservations := u.reservations[:m - 1] || u.reservations[m + 1:];
        end if;
        if is_of_sync then
          q.sync_reservations := array_remove(q.sync_reservations, reservation);
          q.sync_from := q.sync_from - spacing_ms;
          q.sync_calls := q.sync_calls - 1;
        elsif kind = 'unproven' then
          q.unproven_reservations := array_remove(q.unproven_reservations, reservation);
        else
          q.client_calls := q.client_calls - 1;
        end if;
        is_changed := true;
      end loop;
    end if;

    ahead := 0;
    if p_ahead[i] > 0 and kind = 'sync' and per_window = p_per_window and not is_busy and not is_limited_by_user
      and asked_at - q.live_at >= busy_ms
    then
      ahead := p_ahead[i];
    end if;
    reservations := array_fill(null::float8, array[wanted + ahead]);
    -- One more iteration than reservations, for next_at.
    for j in 1 .. wanted + ahead + 1 loop
      n := cardinality(q.reservations);
      reservation := greatest(
        asked_at, q.blocked_until, q.reservations[n] - margin, q.reservations[n - per_window + 1] + p_window_ms);
      reach := within[j];
      if is_sync then
        queue_end := reservation;
        m := cardinality(q.sync_reservations);
        if q.sync_reservations[m] > asked_at - overdue_ms then
          reservation := greatest(reservation, q.sync_from, q.sync_reservations[m - share + 1] - margin + share * spacing_ms);
          if is_busy then
            reservation := greatest(reservation, q.reservations[n] - margin + pace_ms / per_window - busy_credit_ms);
          end if;
          if j > wanted and j <= wanted + ahead then
            reservation := greatest(reservation, q.sync_reservations[m] - margin + greatest(least_spacing * spacing_ms,
              least(spacing_ms, q.sync_reservations[m - share + 1] + share * spacing_ms - q.sync_reservations[m])));
            reach := case when reservations[j - 1] is not null then advance_ms end;
          end if;
          if kind <> 'sync' and reservation - asked_at > coalesce(reach, 0) then
            turn_ms := 5 * pace_ms / per_window;
            turn_at := case when kind = 'named'
              then greatest(q.sync_reservations[m - 1] + turn_ms, q.sync_reservations[m - 2] + 2 * turn_ms)
              else greatest(q.sync_reservations[m] + turn_ms, q.sync_reservations[m - 1] + 2 * turn_ms)
            end - margin;
            if turn_at > queue_end + busy_credit_ms then
              -- A reservation beyond the queue's end would hold up clients that have not queued yet: ask again when the
              -- queue's end is likely to have reached the live call's turn. That time is no reservation, even if it is
              -- within the reach of a process with little CPU.
              reservation := least(reservation, asked_at + turn_at - queue_end);
              reach := null;
            elsif reach is null then
              reservation := asked_at;
            else
              reservation := greatest(queue_end, turn_at);
              reach := reach + 2 * p_window_ms;
            end if;
          end if;
        else
          -- Sync must not starve: this call joins the clients' queue.
          reach := reach + 2 * p_window_ms;
        end if;
      elsif kind = 'client' then
        reach_ms := case when q.reservations[n] >= q.advance_from then firm_ms + q.advance_margin else sync_reach_ms end;
        if reservation > asked_at + reach_ms
          and q.sync_reservations[cardinality(q.sync_reservations)] > asked_at - busy_ms
        then
          reservation := greatest(reservation, q.reservations[n] - margin + pace_ms / per_window - busy_credit_ms);
        end if;
      else
        m := cardinality(q.unproven_reservations);
        if q.unproven_reservations[m] > asked_at - unproven_pause_ms then
          reservation := case when is_busy
            then greatest(reservation, q.unproven_reservations[m] + unproven_pause_ms)
            else greatest(reservation, q.unproven_reservations[m - 4] + unproven_window_ms,
              q.reservations[n - greatest(1, per_window - 2) + 1] + p_window_ms)
          end;
        else
          reach := reach + 2 * p_window_ms;
        end if;
      end if;
      if is_limited_by_user then
        reservation := quota_user_reservation(u.reservations, greatest(reservation, u.blocked_until), margin,
          case when is_sync then sync_per_user else p_per_user end, p_window_ms);
      end if;
      if reservation - asked_at <= reach then
        reservations[j] := reservation + margin;
        q.reservations := q.reservations || reservations[j];
        if u.id is not null then
          u.reservations := u.reservations || reservations[j];
        end if;
        if is_sync then
          -- Those that are not in advance, and those before them, cannot be revoked.
          q.advance_from := case when j <= wanted then 'infinity' else least(q.advance_from, reservations[j]) end;
          q.advance_margin := margin;
          q.sync_reservations := q.sync_reservations[greatest(m + 2 - greatest(5, share), 1):] || reservations[j];
          credit_ms := case when is_busy then busy_credit_ms else quiet_credit_ms end;
          q.sync_from := greatest(q.sync_from, reservation - credit_ms) + spacing_ms;
          q.sync_calls := q.sync_calls + 1;
        elsif kind = 'client' then
          q.client_calls := q.client_calls + 1;
        else
          q.unproven_reservations := q.unproven_reservations[greatest(m - 3, 1):] || reservations[j];
        end if;
        is_changed := true;
      else
        next_at := reservation;
      end if;
    end loop;

    if is_changed then
      update quota_windows w
      set reservations = q.reservations, standing = q.standing, sync_reservations = q.sync_reservations, sync_from = q.sync_from,
        client_at = q.client_at, unproven_reservations = q.unproven_reservations, blocked_until = q.blocked_until,
        advance_from = q.advance_from,
        advance_margin = q.advance_margin, revoked = q.revoked, live_at = q.live_at, user_id = q.user_id, sync_calls = q.sync_calls, client_calls = q.client_calls, counted_from = q.counted_from
      where w.key = v_key;
      if u.id is not null then
        update quota_users o set reservations = u.reservations where o.id = u.id;
      end if;
    end if;
    return next;
  end loop;
end $$;

-- quota_acquire(key, limits, kind, share, within, back, now, user, margin, own, ahead): quota_acquire_all for one key.
create or replace function quota_acquire(
  p_key text, p_limits source_limits, p_kind text, p_share integer, p_within float8[],
  p_back float8[] default '{}', p_now float8 default null, p_user text default null, p_margin float8 default 0,
  p_own boolean default false, p_ahead integer default 0)
returns table (asked_at float8, reservations float8[], next_at float8, margin float8)
language sql as $$
  select * from quota_acquire_all(
    p_limits.window_ms, p_limits.per_window, p_limits.throttled_per_window, p_limits.per_user, array[p_key],
    array[p_kind], array[p_share], array[p_within::text], array[p_back::text], array[p_user], array[p_margin],
    array[p_own], array[p_ahead], p_now);
$$;

-- quota_report_late(key, reservation, now, margin): records that the call of that reservation was sent only now,
-- because the process was suspended between its last look at the clock and the request.
create or replace function quota_report_late(p_key text, p_reservation float8, p_now float8 default null, p_margin float8 default 20) returns void
language plpgsql as $$
declare
  taken float8[];
  n integer;
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  select w.reservations into taken from quota_windows w where w.key = p_key;
  n := array_position(taken, p_reservation);
  if n is not null then
    taken := taken[:n - 1] || taken[n + 1:];
  end if;
  taken := taken || (coalesce(p_now, extract(epoch from clock_timestamp()) * 1000) + p_margin)::float8;
  update quota_windows w set reservations = array(select s from unnest(taken) s order by s) where w.key = p_key;
end $$;

-- quota_served(key, now): counts a call that the source has served and that was not counted when it was granted.
create or replace function quota_served(p_key text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
  update quota_windows w set client_calls = w.client_calls + 1 where w.key = p_key;
end $$;
