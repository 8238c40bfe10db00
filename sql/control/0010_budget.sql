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
-- any 1,025 ms. Places of other keys may lie ahead, so it looks both ways, and there as far as both may be late.
create function quota_user_place(p_slots float8[], p_from float8) returns float8
language plpgsql immutable as $$
declare
  window_ms constant float8 := 1025;
  most_late_ms constant float8 := 100;
  per_window constant integer := 50;
  place float8 := p_from;
  near float8[];
begin
  loop
    exit when cardinality(p_slots) < per_window;
    near := array(
      select s from unnest(p_slots) s
      where s > place - window_ms and s < place + window_ms + 2 * most_late_ms
      order by s);
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

-- Down Migration

drop function quota_leave, quota_hasten, quota_slow, quota_user_place, quota_user_slots;
drop table quota_users, quota_slowed, quota_kinds;
alter table bases drop column workspace_id, drop column rests_until, drop column source_user_id;
drop table workspaces;
