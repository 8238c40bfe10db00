-- Up Migration

-- When the worker was first heard of, by this server's clock: one that has only just come is not given what others
-- hold, and the clock of its machine takes no part in it.
alter table workers add column joined_at timestamptz not null default now();

-- Down Migration

alter table workers drop column joined_at;
