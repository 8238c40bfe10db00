-- What is replicated and to where: clusters hold databases, databases hold bases, bases have sync runs.
-- Every `sealed_…` column is encrypted by core/secrets with `<table>.<what>:<id>` as its context.

create table clusters (
  id text not null,
  name text not null,
  region text not null,
  sealed_admin_url text not null,
  public_host text not null,
  public_port integer not null,
  state text not null default 'active',
  created_at timestamptz not null default now(),
  constraint clusters_pkey primary key (id),
  constraint clusters_name_key unique (name),
  constraint clusters_state_check check (state in ('active', 'draining')),
  constraint clusters_port_check check (public_port between 1 and 65535)
);

comment on column clusters.state is 'draining: keeps its databases, gets no new ones';

create table databases (
  id text not null,
  account_id text not null,
  cluster_id text,
  name text not null,
  role_name text not null,
  sealed_password text,
  sealed_url text,
  external_host text,
  external_port integer,
  is_writable boolean not null default false,
  created_at timestamptz not null default now(),
  constraint databases_pkey primary key (id),
  constraint databases_account_fkey foreign key (account_id) references accounts (id),
  constraint databases_cluster_fkey foreign key (cluster_id) references clusters (id),
  -- Hosted by us, with a role that we made, or by the customer, reached with the URL that they gave.
  constraint databases_place_check check (
    case when cluster_id is null
      then num_nonnulls(sealed_url, external_host, external_port) = 3 and sealed_password is null
      else num_nonnulls(sealed_url, external_host, external_port) = 0 and sealed_password is not null
    end)
);

create index databases_account_idx on databases (account_id);
create unique index databases_hosted_key on databases (cluster_id, name) where cluster_id is not null;
-- Two syncs into one schema would fight: a customer's database is known once, whoever names it.
create unique index databases_external_key on databases (external_host, external_port, name) where cluster_id is null;

create table bases (
  id text not null,
  account_id text not null,
  platform text not null,
  source_base_id text not null,
  name text not null,
  sealed_api_key text not null,
  database_id text not null,
  schema_name text not null,
  state text not null default 'starting',
  turbo boolean not null default false,
  rapid boolean not null default false,
  linked_records_as_text boolean not null default false,
  lookups_as_text boolean not null default false,
  is_paused boolean not null default false,
  resync_requested_at timestamptz,
  sync_kind text,
  sync_started_at timestamptz,
  sync_completed_at timestamptz,
  sync_duration_ms double precision,
  attempted_at timestamptz,
  error_code text,
  error_message text,
  error_since timestamptz,
  progress jsonb,
  tables jsonb not null default '[]',
  issue_count integer not null default 0,
  issues jsonb not null default '[]',
  created_at timestamptz not null default now(),
  constraint bases_pkey primary key (id),
  constraint bases_account_fkey foreign key (account_id) references accounts (id),
  constraint bases_database_fkey foreign key (database_id) references databases (id),
  constraint bases_source_key unique (account_id, platform, source_base_id),
  constraint bases_schema_key unique (database_id, schema_name),
  constraint bases_state_check
    check (state in ('starting', 'active', 'paused', 'needs_attention', 'deleting')),
  constraint bases_paused_check check (state = 'deleting' or is_paused = (state = 'paused')),
  constraint bases_sync_kind_check check (sync_kind in ('first', 'rebuild', 'sweep')),
  constraint bases_error_check check (num_nulls(error_code, error_message, error_since) in (0, 3))
)
-- Rewritten after every sync: room on the page keeps those updates off the indexes.
with (fillfactor = 50);

comment on column bases.sync_started_at is 'with kind, completed_at and duration_ms: the last sync that completed';
comment on column bases.attempted_at is 'when the last sync ended, completed or not';
comment on column bases.error_since is 'when the first of the unbroken run of failed syncs ended; null when the last one completed';
comment on column bases.progress is 'the first sync or rebuild that is running: {kind, started_at, tables}';
comment on column bases.issues is 'up to 100 of the issue_count cells that did not fit their column';

create table sync_runs (
  id bigint generated always as identity,
  base_id text not null,
  kind text not null,
  started_at timestamptz not null,
  completed_at timestamptz,
  seen integer not null,
  inserted integer not null,
  updated integer not null,
  deleted integer not null,
  requests integer not null,
  wait_ms double precision not null,
  error_code text,
  error_message text,
  constraint sync_runs_pkey primary key (id),
  constraint sync_runs_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint sync_runs_kind_check check (kind in ('first', 'rebuild', 'sweep'))
);

comment on column sync_runs.completed_at is 'null when the run failed';

create index sync_runs_base_idx on sync_runs (base_id, id desc);
