-- Up Migration

-- What analysts may have besides the rows.
alter table bases
  add column link_views boolean not null default false,
  add column history boolean not null default false,
  add column history_days integer not null default 30,
  add column notify boolean not null default false,
  add constraint bases_history_days_check check (history_days between 1 and 3650);

comment on column bases.link_views is 'the replica has a view for each array of links: one row per link';
comment on column bases.history is 'changes of records are noted in _sync_history, for history_days';
comment on column bases.notify is 'changes of records are told to whoever listens to the channel "basetide"';

-- Down Migration

alter table bases
  drop column link_views, drop column history, drop column history_days, drop column notify;
