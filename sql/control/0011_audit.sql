-- Up Migration

-- Who changed what. Without foreign keys: what is told here outlives what it tells of.
create table audit_log (
  id bigint generated always as identity,
  at timestamptz not null default clock_timestamp(),
  -- Null: the service as a whole.
  account_id text,
  actor_kind text not null,
  -- E-mail address of a user or operator, name of a token, name of who runs the command line.
  actor text not null,
  action text not null,
  -- Id of what was changed: its first letters tell its kind.
  subject text,
  -- Facts for people, never a secret.
  details jsonb not null default '{}',
  constraint audit_log_pkey primary key (id),
  constraint audit_log_actor_check check (actor_kind in ('user', 'token', 'operator', 'cli', 'system')),
  constraint audit_log_details_check check (jsonb_typeof(details) = 'object')
);

create index audit_log_account_idx on audit_log (account_id, id desc);
create index audit_log_at_idx on audit_log (at);

-- Who made it: what a member made goes when they do. Null: the operator, or somebody who is no user any more.
alter table api_tokens
  add column created_by text,
  add constraint api_tokens_user_fkey foreign key (created_by) references users (id) on delete set null;

-- Attempts of one kind within a window of time, counted over all processes.
create unlogged table attempts (
  key text not null,
  count integer not null,
  ends_at timestamptz not null,
  constraint attempts_pkey primary key (key)
) with (fillfactor = 50);

-- attempt(key, most, window): counts one more. Returns 0, or, when there were `most` before it in the same window, the
-- milliseconds until that is over. One row, so all processes share the limit; the database's clock.
create function attempt(p_key text, p_most integer, p_window interval) returns integer language sql as $$
  insert into attempts as a (key, count, ends_at) values (p_key, 1, clock_timestamp() + p_window)
  on conflict (key) do update set
    count = case when a.ends_at <= clock_timestamp() then 1 else least(a.count, p_most) + 1 end,
    ends_at = case when a.ends_at <= clock_timestamp() then excluded.ends_at else a.ends_at end
  returning case when count <= p_most then 0
    else greatest(1, ceil(extract(epoch from ends_at - clock_timestamp()) * 1000))::integer end
$$;

-- Which service this is. What it makes on clusters that others use too bears this name.
create table installation (
  id text not null,
  made_at timestamptz not null default now(),
  constraint installation_pkey primary key (id)
);
create unique index installation_one_row on installation ((true));

-- Down Migration

drop table installation;
drop function attempt(text, integer, interval);
drop table attempts;
alter table api_tokens drop column created_by;
drop table audit_log;
