-- Up Migration

-- Entries that count what may happen often (failed sign-ins, credentials read by a program): one per hour, so that no
-- one can fill the log. Null: an entry that stands for one event.
alter table audit_log add column period timestamptz;
create unique index audit_log_period_key on audit_log (account_id, action, subject, actor, period)
  where period is not null;

-- Expired counters are cleared every hour.
create index attempts_ends_idx on attempts (ends_at);

-- Down Migration

drop index attempts_ends_idx;
drop index audit_log_period_key;
alter table audit_log drop column period;
