-- Up Migration

-- Live mode: the source tells what has changed, by a feed of changes per base.
alter table bases
  add column live boolean not null default true,
  add column recent_live_ms double precision[] not null default '{}',
  drop constraint bases_sync_kind_check,
  add constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep', 'rapid', 'live'));

comment on column bases.live is 'changes are to be read from the source''s feed, where the key may';
comment on column bases.recent_live_ms is 'durations of the last 20 rounds of live mode that changed something, the latest first';

alter table sync_runs
  drop constraint sync_runs_kind_check,
  add constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep', 'rapid', 'live'));

comment on column sync_runs.kind is
  'rapid: a turn over all tables, asking for what was modified; live: a round over what the feed told';

-- The feed of a base, and how reading it goes. One row from the first attempt on.
create table live_feeds (
  base_id text not null,
  state text not null default 'making',
  -- refused: why, in words for people, and since when
  reason text not null default '',
  refused_at timestamptz,
  -- The source's id of the hook; null while there is none.
  hook_id text,
  -- What signs its pings, sealed.
  sealed_secret text,
  -- What is before it is durable in the replica.
  cursor bigint not null default 1,
  -- Where pings go; null: the feed is polled.
  notification_url text,
  expires_at timestamptz,
  -- Changes of before then are not in the feed: a sweep that begins later has to be completed.
  gap_since timestamptz,
  pinged_at timestamptz,
  -- When a change was found that no ping had told of: until there is a later one, nobody waits for pings.
  unpinged_at timestamptz,
  -- When the source was last asked how the hook is.
  checked_at timestamptz,
  read_at timestamptz,
  -- By when it is to be read again, whatever happens.
  due_at timestamptz,
  -- When it last told of a change.
  changed_at timestamptz,
  -- Records known to have changed and not read again yet.
  waiting integer not null default 0,
  waiting_since timestamptz,
  -- Records that a sweep found changed and the feed never told of.
  missed bigint not null default 0,
  missed_at timestamptz,
  -- When SQL was last compared with the source, and since when it was found to lag behind.
  compared_at timestamptz,
  stale_since timestamptz,
  constraint live_feeds_pkey primary key (base_id),
  constraint live_feeds_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint live_feeds_state_check check (state in ('making', 'on', 'refused')),
  constraint live_feeds_hook_check check ((hook_id is null) = (sealed_secret is null))
);

-- Down Migration

drop table live_feeds;
update bases set sync_kind = 'sweep' where sync_kind = 'live';
delete from sync_runs where kind = 'live';
alter table bases
  drop constraint bases_sync_kind_check,
  add constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep', 'rapid')),
  drop column live, drop column recent_live_ms;
alter table sync_runs
  drop constraint sync_runs_kind_check,
  add constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep', 'rapid'));
