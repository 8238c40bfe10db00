-- Up Migration

-- Proxied writes look up who has connected a source base.
create index bases_source_idx on bases (platform, source_base_id);

-- Somebody saw that the source's schema is not what the replica has: the next sync is to look at it, however fresh
-- its last look is.
alter table bases add column schema_look_requested_at timestamptz;

-- Records that the source has written and a replica may not show: they are to be read again and applied.
create table repairs (
  base_id text not null,
  -- Whatever names the table: its id, its name as in the request's path, or the id of one of its fields.
  table_ref text not null,
  record_id text not null,
  noted_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  -- Not before: a claim moves it on, so that what a dead process had claimed comes up again.
  due_at timestamptz not null default now(),
  constraint repairs_pkey primary key (base_id, table_ref, record_id),
  constraint repairs_base_fkey foreign key (base_id) references bases (id) on delete cascade
);

create index repairs_due_idx on repairs (due_at);

-- Down Migration

drop table repairs;
alter table bases drop column schema_look_requested_at;
drop index bases_source_idx;
