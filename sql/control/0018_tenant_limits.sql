-- Up Migration

alter table databases add column connection_limit integer not null default 10,
  add constraint databases_connection_limit_check check (connection_limit between 1 and 10000);

comment on column databases.connection_limit is 'connections that the role of a hosted database may open';

-- When the watchdog last looked at all clusters: one worker at a time does.
create table watchdog_clock (
  looked_at timestamptz not null
);
create unique index watchdog_clock_one_row on watchdog_clock ((true));
insert into watchdog_clock (looked_at) values ('-infinity');

-- Down Migration

drop table watchdog_clock;
alter table databases drop column connection_limit;
