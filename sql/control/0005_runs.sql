-- Up Migration

-- Sync runs, kept for 30 days: syncs that were alike are one row. See core/control/runs.ts for which are.
alter table sync_runs
  add column syncs integer not null default 1,
  add column total_ms double precision,
  add column longest_ms double precision,
  drop constraint sync_runs_kind_check,
  add constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep', 'rapid'));

comment on column sync_runs.syncs is
  'how many; started_at is of the first, completed_at and seen of the last, the other counts are sums';
comment on column sync_runs.kind is 'rapid: a turn over all tables, asking for what was modified';

update sync_runs
set total_ms = extract(epoch from completed_at - started_at) * 1000,
    longest_ms = extract(epoch from completed_at - started_at) * 1000
where completed_at is not null;

create index sync_runs_started_idx on sync_runs (started_at);

alter table bases
  add column recent_sweep_ms double precision[] not null default '{}',
  add column recent_rapid_ms double precision[] not null default '{}',
  add column sweep_started_at timestamptz,
  add column sweep_completed_at timestamptz,
  add column sweep_beside_ms double precision,
  drop constraint bases_sync_kind_check,
  add constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep', 'rapid'));

comment on column bases.recent_sweep_ms is 'durations of the last 20 sweeps that completed, the latest first';
comment on column bases.recent_rapid_ms is 'the same of turns in rapid mode';
comment on column bases.sweep_started_at is
  'with completed_at: the last time that every record was read, also beside rapid turns';
comment on column bases.sweep_beside_ms is 'how long a sweep beside rapid turns is expected to take';

update bases as b
set recent_sweep_ms = array(
      select extract(epoch from r.completed_at - r.started_at)::float8 * 1000 from sync_runs as r
      where r.base_id = b.id and r.kind = 'sweep' and r.completed_at is not null
      order by r.id desc limit 20),
    sweep_started_at = b.sync_started_at,
    sweep_completed_at = b.sync_completed_at,
    sweep_beside_ms = b.sync_duration_ms * 6;

-- Down Migration

update bases set sync_kind = 'sweep' where sync_kind = 'rapid';
delete from sync_runs where kind = 'rapid';
drop index sync_runs_started_idx;
alter table bases
  drop constraint bases_sync_kind_check,
  add constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep')),
  drop column recent_sweep_ms, drop column recent_rapid_ms,
  drop column sweep_started_at, drop column sweep_completed_at, drop column sweep_beside_ms;
alter table sync_runs
  drop constraint sync_runs_kind_check,
  add constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep')),
  drop column syncs, drop column total_ms, drop column longest_ms;
