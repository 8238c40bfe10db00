-- Permits: the rights to use one request in each window of a key. A base has as many as its source allows in a window (five),
-- and a user of the source as many as all bases of the user together (fifty).
--
-- I4. A permit is used at most once a window by the process that holds it, and is passed on with its rest: how long it must
-- wait until it may be used again. A rest is a duration, so no clock is compared with another, and whatever delays a message
-- makes the rest longer. All changes of a key's permits are made under an advisory lock, in this database, to which only the
-- control plane's role may connect.

-- quota_trade(key, session, life, kind, want, most, given, rests, per_window, throttled, user, now): returns permits, and asks
-- for others.
--   session    the process; what it is told is sent to the channel of that name
--   life       grows whenever the process has lost track of the key: what it held before lapses
--   kind       'client' or 'sync'
--   want       how many more permits the process waits for, in all; in its turn, it is told when it gets one
--   most       of all permits, those that processes may hold for this kind; of different ones, the highest counts
--   given      numbers of permits that are returned, and `rests`, their rests in ms
--   per_window how many permits the key has, and `throttled`, how many a throttled one; null for a user of the source
--   user       for sync: the user whose limit over all bases may matter, as a key; else null
-- Returns messages, each for one process (core/limiter/permit-set.ts); none for `session` if its lease has run out.
create or replace function quota_trade(
  p_key text, p_session text, p_life integer, p_kind text, p_want integer, p_most integer, p_given integer[],
  p_rests float8[], p_per_window integer, p_throttled integer, p_user text default null, p_now float8 default null)
returns table (session text, message jsonb)
language plpgsql as $$
declare
  now_ms float8;
  granted jsonb;
begin
  perform quota_lock(p_key);
  now_ms := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  perform quota_open(p_key, p_per_window, p_throttled, now_ms);
  if p_kind = 'sync' then
    update quota_keys k set user_id = p_user where k.key = p_key and k.user_id is distinct from p_user;
  end if;
  update quota_permits p set session = null, rests_until = now_ms + g.rest
  from unnest(p_given, p_rests) as g (number, rest)
  where p.key = p_key and p.number = g.number and p.session = p_session and p.life = p_life;
  perform quota_lapse(p_key, p_session, p_life, now_ms);
  if not exists (select from quota_holders h where h.session = p_session and h.heard_at > now_ms - quota_lease_ms()) then
    return;
  end if;
  perform quota_want(p_key, p_session, p_life, p_kind, p_want, p_most, now_ms);
  granted := quota_serve(p_key, now_ms);
  return query
    select t.session, jsonb_build_object('key', p_key, 'life', t.life) || jsonb_object_agg(f.key, f.value)
    from (
      select g.session, g.life,
        jsonb_build_object('granted', jsonb_agg(jsonb_build_array(g.number, g.rest))) || quota_state(p_key, now_ms) as part
      from jsonb_to_recordset(granted) as g (session text, life integer, number integer, rest float8) group by 1, 2
      union all
      select r.* from quota_recall(p_key, granted <> '[]', p_throttled is null, now_ms) r
      union all
      select p_session, p_life, quota_state(p_key, now_ms)
    ) t, jsonb_each(t.part) f
    group by t.session, t.life;
end $$;

-- quota_lock(key): the lock under which everything of a key changes.
create or replace function quota_lock(p_key text) returns void
language sql as $$
  select pg_advisory_xact_lock(hashtextextended('quota:' || p_key, 0));
$$;

-- How long a process holds its permits after its last heartbeat, ms. core/limiter/permit-holder.ts has the same.
create or replace function quota_lease_ms() returns float8
language sql immutable as $$
  select 1500::float8;
$$;

-- The longest rest of a permit that was just used, ms: a window, and what core/limiter/base-queue.ts adds at most.
create or replace function quota_longest_rest_ms() returns float8
language sql immutable as $$
  select 1200::float8;
$$;

-- quota_open(key, per_window, throttled, now): creates the permits of a key that has none. After a crash of this server, which
-- empties these tables, they rest until nothing that was granted before is in use.
create or replace function quota_open(p_key text, p_per_window integer, p_throttled integer, p_now float8) returns void
language plpgsql as $$
begin
  if exists (select from quota_keys k where k.key = p_key) then
    return;
  end if;
  insert into quota_keys (key, throttled, blocked_until)
  select p_key, p_throttled, coalesce((select extract(epoch from b.blocked_until) * 1000 from quota_blocks b
    where b.key = p_key and b.reason = 'rate_limited'), 0);
  insert into quota_permits (key, number, rests_until)
  select p_key, n, case when e > 0 then e + 2 * quota_lease_ms() + quota_longest_rest_ms() else 0 end
  from generate_series(1, p_per_window) n, quota_epoch(p_now) e;
end $$;

-- quota_epoch(now): since when these tables are as they are; 0 if they have never been lost.
create or replace function quota_epoch(p_now float8) returns float8
language sql as $$
  insert into quota_epochs (opened_at) values (p_now) on conflict (is_only) do nothing;
  select e.opened_at from quota_epochs e;
$$;

-- quota_lapse(key, session, life, now): takes back what processes held that are gone, a lease after the end of theirs: one that
-- stood still just before it wrote may send a request late. A proxy may go on using some until its silence is noticed.
create or replace function quota_lapse(p_key text, p_session text, p_life integer, p_now float8) returns void
language sql as $$
  update quota_permits p set session = null, rests_until = greatest(p.rests_until, gone.at + quota_longest_rest_ms())
  from (
    select o.number, coalesce(case when o.session <> p_session then h.heard_at + 2 * quota_lease_ms() end, p_now) as at
    from quota_permits o left join quota_holders h on h.session = o.session
    where o.key = p_key and (o.session <> p_session or o.life <> p_life)) as gone
  where p.key = p_key and p.number = gone.number and gone.at <= p_now;
  delete from quota_wants w
  where w.key = p_key and not exists (
    select from quota_holders h where h.session = w.session and h.heard_at > p_now - quota_lease_ms());
$$;

-- quota_want(key, session, life, kind, want, most, now): the process's place in the queue, one row per permit.
create or replace function quota_want(
  p_key text, p_session text, p_life integer, p_kind text, p_want integer, p_most integer, p_now float8) returns void
language sql as $$
  delete from quota_wants w where w.key = p_key and w.session = p_session and w.id not in (
    select o.id from quota_wants o
    where o.key = p_key and o.session = p_session and o.life = p_life and o.kind = p_kind and o.most = p_most
    order by o.id limit p_want);
  insert into quota_wants (key, id, session, life, kind, most, since)
  select p_key, last + n, p_session, p_life, p_kind, p_most, p_now
  from (
    select coalesce(max(w.id), 0) as last, count(*) filter (where w.session = p_session) as has
    from quota_wants w where w.key = p_key) k,
    generate_series(has + 1, p_want) n;
$$;

-- quota_usable(key, now): permits with a higher number are used by no process but silent proxies.
create or replace function quota_usable(p_key text, p_now float8) returns integer
language sql stable as $$
  select case when k.throttled is null then count(*)::integer else greatest(1,
    least(count(*)::integer, case when quota_throttled_until(p_key) > p_now then k.throttled end) - quota_silent(p_now)) end
  from quota_keys k join quota_permits p using (key) where k.key = p_key group by k.key;
$$;

-- quota_serve(key, now): grants free permits to the processes that wait: clients, then sync, each in order of arrival. Sync that
-- has waited for long has its turn among clients. What a client has just used is for sync, which passes one that has rested
-- longer. Returns session, life, number and rest of each.
create or replace function quota_serve(p_key text, p_now float8) returns jsonb
language plpgsql as $$
declare
  usable constant integer := quota_usable(p_key, p_now);
  granted jsonb := '[]';
  -- It may keep one.
  syncs constant integer := (
    select count(*) - 1 from quota_permits p where p.key = p_key and p.session is not null and p.kind = 'sync');
  recalled integer := 0;
  waiting quota_wants;
  free quota_permits;
begin
  for waiting in
    select w.* from quota_wants w where w.key = p_key
    order by w.kind = 'sync' and not quota_is_overdue(w, p_now), w.id
  loop
    continue when exists (
      select from quota_permits p where p.key = p_key and p.session is not null and p.kind = waiting.kind
      having count(*) >= greatest(waiting.most, max(p.most)));
    select p.* into free from quota_permits p where p.key = p_key and p.session is null and p.number <= usable
    order by waiting.kind = 'client' and quota_is_resting(p, p_now), p.rests_until, p.number limit 1;
    exit when not found;
    if waiting.kind = 'client' and quota_is_resting(free, p_now) and recalled < syncs then
      recalled := recalled + 1;
      continue;
    end if;
    update quota_permits p set session = waiting.session, life = waiting.life, kind = waiting.kind, most = waiting.most
    where p.key = p_key and p.number = free.number;
    delete from quota_wants w where w.key = p_key and w.id = waiting.id;
    granted := granted || jsonb_build_object('session', waiting.session, 'life', waiting.life, 'number', free.number,
      -- If the clock was set back, a permit rests no longer than after a crash.
      'rest', least(free.rests_until - p_now, 2 * quota_lease_ms() + quota_longest_rest_ms()));
  end loop;
  return granted;
end $$;

-- quota_is_resting(permit, now): a client has just used it.
create or replace function quota_is_resting(p_permit quota_permits, p_now float8) returns boolean
language sql immutable as $$
  select p_permit.kind = 'client' and p_permit.rests_until > p_now + 200;
$$;

-- quota_is_overdue(want, now): clients leave one permit to sync that has waited for long and has none.
create or replace function quota_is_overdue(p_want quota_wants, p_now float8) returns boolean
language sql stable as $$
  select p_want.kind = 'sync' and p_want.since < p_now - 7000 and not exists (
    select from quota_permits p where p.key = p_want.key and p.session = p_want.session);
$$;

-- quota_recall(key, is_granted, is_user, now): tells processes that hold permits what others wait for.
--   recalled  permits that others get instead: those of sync for clients; one, for sync that is overdue; and one of a process
--             that has at least two more than another of its kind, but not of a client's that takes turns
--   shared    other processes have clients of this key, too: what is used is returned at once, to the process in turn
--   wanted    permits that sync waits for: what clients do not need
create or replace function quota_recall(p_key text, p_is_granted boolean, p_is_user boolean, p_now float8)
returns table (session text, life integer, part jsonb)
language sql as $$
  with held as (
    select p.session, p.life, p.kind, count(*)::integer as n from quota_permits p
    where p.key = p_key and p.session is not null group by 1, 2, 3),
  waiting as (
    select w.session, w.kind, count(*)::integer as n, bool_or(quota_is_overdue(w, p_now)) as is_overdue,
      (select coalesce(sum(h.n), 0) from held h where h.session = w.session) as has
    from quota_wants w where w.key = p_key group by 1, 2),
  clients as (
    select count(distinct o.session) > 1 as are_several from (
      select h.session from held h where h.kind = 'client'
      union all select w.session from waiting w where w.kind = 'client') o)
  select h.session, h.life, jsonb_strip_nulls(jsonb_build_object(
    'recalled', coalesce(
      case when h.kind <> 'client' then
        (select nullif(least(h.n, coalesce(sum(w.n), 0)), 0) from waiting w where w.kind = 'client' and w.session <> h.session) end,
      (select 1 from waiting w where w.session <> h.session and ((w.is_overdue and (h.kind <> 'sync' or h.n > 1))
        or (w.kind = h.kind and w.has <= h.n - 2 and (p_is_user or h.kind <> 'client'))) limit 1)),
    'shared', case when h.kind = 'client' and not p_is_user and c.are_several then true end,
    'wanted', case when h.kind <> 'sync' then (select sum(w.n) from waiting w where w.kind = 'sync') end))
  from held h, clients c
  where exists (select from waiting) or (p_is_granted and c.are_several);
$$;

-- quota_state(key, now): what every answer and grant says of a key. Times may have passed.
--   throttled, throttledMs  the key has only so many permits, and for how long
--   blockedMs               how long the source has asked to wait
--   user                    as in quota_trade
create or replace function quota_state(p_key text, p_now float8) returns jsonb
language sql stable as $$
  select jsonb_build_object('user', k.user_id, 'throttled', k.throttled,
    'throttledMs', quota_throttled_until(p_key) - p_now, 'blockedMs', k.blocked_until - p_now)
  from quota_keys k where k.key = p_key;
$$;

-- quota_announce(key): tells all processes that hold permits of the key.
create or replace function quota_announce(p_key text) returns void
language sql as $$
  select pg_notify(p.session, (jsonb_build_object('key', p_key, 'life', p.life)
    || quota_state(p_key, extract(epoch from clock_timestamp()) * 1000))::text)
  from (select distinct session, life from quota_permits where key = p_key and session is not null) p;
$$;

-- quota_heartbeat(name, session, is_proxy, seen, owed, uses_owed, per_window, now): records that a process is alive.
--   name       of a process that serves clients without this server: the same after a restart; else its session
--   seen       when it sent this, at the latest: this server's time in its last answer, and the duration since. A delayed
--              message does not count for more. Null for the first one
--   owed       what it uses while it hears nothing, until this answer arrives; uses_owed: it has been doing that
--   per_window how many permits every key has
-- Returns asked_at, the time here; epoch: what was held in another epoch is lost; owed: how many permits of every key the
-- process may use from now on when it hears nothing from this server: two with up to two proxies, one with more, and with up to
-- four never so many that all silent ones leave none; and silent: how many of every key, those with the highest numbers, are left to silent
-- proxies.
create or replace function quota_heartbeat(
  p_name text, p_session text, p_is_proxy boolean, p_seen float8, p_owed integer, p_uses_owed boolean, p_per_window integer,
  p_now float8 default null)
returns table (asked_at float8, epoch float8, owed integer, silent integer)
language plpgsql as $$
begin
  if p_is_proxy then
    perform quota_lock('proxies');
  end if;
  asked_at := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
  epoch := quota_epoch(asked_at);
  owed := case when p_is_proxy then (
    select greatest(case when count(*) > 3 then 1 else 0 end,
      least(case when count(*) > 1 then 1 else 2 end, p_per_window - 1 - coalesce(sum(o.owed), 0)))
    from quota_owed(asked_at) o where o.name <> p_name) else 0 end;
  delete from quota_holders h where h.name = p_name and h.session <> p_session and h.heard_at < asked_at - 10000;
  insert into quota_holders as h (session, name, owed, seen_at, heard_at, owed_until)
  values (p_session, p_name, greatest(owed, p_owed), least(coalesce(p_seen, asked_at), asked_at), asked_at,
    -- By then it has heard this answer, and what it sent before is out of the window; or it is silent again. Until then it
    -- counts in full, even if the process is owed less from this answer on.
    case when p_uses_owed then asked_at + 3 * quota_lease_ms() else 0 end)
  on conflict (session) do update set seen_at = excluded.seen_at, heard_at = excluded.heard_at,
    owed = greatest(excluded.owed, case when h.owed_until > asked_at then h.owed end),
    owed_until = greatest(h.owed_until, excluded.owed_until);
  if p_is_proxy and not exists (
    select from quota_proxies x where x.name = p_name and x.owed = greatest(quota_heartbeat.owed, p_owed)
      and x.owed_until > asked_at + 900000)
  then
    insert into quota_proxies (name, owed, owed_until) values (p_name, greatest(owed, p_owed), asked_at + 1200000)
    on conflict (name) do update set owed = excluded.owed, owed_until = excluded.owed_until;
  end if;
  silent := quota_silent(asked_at);
  return next;
end $$;

-- quota_owed(now): what each proxy is owed. One that was killed and did not come back looks the same as one that serves clients
-- by itself: for a quarter of an hour. So does one that has not been heard since this server crashed.
create or replace function quota_owed(p_now float8) returns table (name text, owed integer, owed_until float8, seen_at float8)
language sql stable as $$
  select o.name, max(o.owed), max(o.owed_until), max(o.seen_at)
  from (
    select h.name, h.owed, h.owed_until, h.seen_at from quota_holders h where h.name <> h.session
    union all
    select x.name, x.owed, x.owed_until, 0 from quota_proxies x
    where not exists (select from quota_holders h where h.name = x.name)) o
  group by o.name having greatest(max(o.owed_until), max(o.seen_at) + 900000) > p_now;
$$;

-- quota_silent(now): how many permits of every key are left to silent proxies.
create or replace function quota_silent(p_now float8) returns integer
language sql stable as $$
  select coalesce(sum(o.owed), 0)::integer from quota_owed(p_now) o
  where o.owed_until > p_now or o.seen_at < p_now - quota_lease_ms();
$$;

-- quota_end_session(session, now): a process ends, and its last requests may have been sent now. What is granted to it at the same
-- time lapses. Its earlier sessions are not owed anything either; another process with its name is.
create or replace function quota_end_session(p_session text, p_now float8 default null) returns void
language plpgsql as $$
declare
  now_ms constant float8 := coalesce(p_now, extract(epoch from clock_timestamp()) * 1000);
begin
  update quota_holders h set
    -- Longer ago than it is remembered.
    seen_at = now_ms - 900000, owed_until = 0,
    heard_at = case when h.session = p_session then now_ms - 2 * quota_lease_ms() else h.heard_at end
  where h.name = (select o.name from quota_holders o where o.session = p_session)
    and (h.session = p_session or h.heard_at < now_ms - quota_lease_ms());
  delete from quota_proxies x
  where x.name = (select o.name from quota_holders o where o.session = p_session) and not exists (
    select from quota_holders h where h.name = x.name and h.seen_at > now_ms - 900000);
  update quota_permits p set session = null, rests_until = greatest(p.rests_until, now_ms + quota_longest_rest_ms())
  where p.session = p_session;
end $$;

-- quota_trim(now): deletes what is known of some of the keys that were not used for a day; returns how many there were.
create or replace function quota_trim(p_now float8 default extract(epoch from clock_timestamp())::float8 * 1000) returns integer
language plpgsql as $$
declare
  keys constant text[] := array(select k.key from quota_keys k where quota_is_unused(k, p_now - 86400000) order by 1 limit 100);
  v_key text;
begin
  foreach v_key in array keys loop
    perform quota_lock(v_key);
    delete from quota_keys k where k.key = v_key and quota_is_unused(k, p_now - 86400000);
    delete from quota_permits p where p.key = v_key and not exists (select from quota_keys k where k.key = v_key);
  end loop;
  return cardinality(keys);
end $$;

-- quota_is_unused(key's row, since): no permit of the key was used since then, and it is not paused.
create or replace function quota_is_unused(k quota_keys, p_since float8) returns boolean
language sql stable as $$
  select k.blocked_until < p_since and not exists (
    select from quota_permits p left join quota_holders h using (session)
    where p.key = k.key and greatest(p.rests_until, h.heard_at) > p_since);
$$;
