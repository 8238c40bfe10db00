-- Up Migration

-- What changed in the shape of a base's replica, noted when it was carried out; kept for a year.
create table schema_changes (
  id bigint generated always as identity,
  base_id text not null,
  seen_at timestamptz not null default now(),
  kind text not null,
  -- SQL names after the change; of what was dropped, before it. field: null where the change is the table's.
  table_name text not null,
  field_name text,
  -- {source_name, name}, and for a field {source_type, type}
  before jsonb,
  after jsonb,
  constraint schema_changes_pkey primary key (id),
  constraint schema_changes_base_fkey foreign key (base_id) references bases (id) on delete cascade,
  constraint schema_changes_kind_check check (kind in ('table_added', 'table_dropped', 'table_renamed',
    'table_rebuilt', 'field_added', 'field_dropped', 'field_renamed', 'field_retyped'))
);

create index schema_changes_base_idx on schema_changes (base_id, id desc);

-- The other database of a move that is under way: the new one until the base lives there, then the old one. Whatever
-- becomes of the move, it is this one that is to be dropped.
alter table bases add column move_database_id text references databases (id);

-- Down Migration

alter table bases drop column move_database_id;
drop table schema_changes;
