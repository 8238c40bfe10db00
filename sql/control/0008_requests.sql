-- Up Migration

-- What customers ask of the operator, and what became of it.
create table requests (
  id text not null,
  account_id text not null,
  kind text not null,
  -- writable: the database that is to become so
  database_id text,
  -- region: where the account's new databases are to be
  region text,
  message text not null default '',
  state text not null default 'open',
  answer text not null default '',
  created_at timestamptz not null default now(),
  decided_at timestamptz,
  -- The operator's e-mail address, or 'cli'.
  decided_by text,
  constraint requests_pkey primary key (id),
  constraint requests_account_fkey foreign key (account_id) references accounts (id) on delete cascade,
  constraint requests_database_fkey foreign key (database_id) references databases (id) on delete cascade,
  constraint requests_kind_check check (kind in ('region', 'writable', 'shared_database', 'other')),
  constraint requests_state_check check (state in ('open', 'approved', 'denied')),
  constraint requests_decided_check check ((state = 'open') = (decided_at is null)),
  constraint requests_subject_check check (
    (kind = 'writable') = (database_id is not null) and (kind = 'region') = (region is not null))
);

create index requests_account_idx on requests (account_id, created_at);
-- Asking twice changes nothing.
create unique index requests_open_key on requests (account_id, kind, coalesce(database_id, '')) where state = 'open';

-- Where the account's new databases go, once the operator has agreed to it; null: wherever there is room.
alter table accounts add column region text;

-- Workers that are there: each writes its own row every few seconds, and takes it away when it stops.
create unlogged table workers (
  id text not null,
  host text not null,
  pid integer not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  -- bases in hand, and how many it takes
  bases integer not null,
  capacity integer not null,
  constraint workers_pkey primary key (id)
) with (fillfactor = 50);

-- Down Migration

drop table workers;
alter table accounts drop column region;
drop table requests;
