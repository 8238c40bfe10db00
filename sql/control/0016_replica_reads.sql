-- Up Migration

alter table bases add column replica_reads boolean not null default false;

comment on column bases.replica_reads is 'reads through the proxy may be answered from the replica without its header';

-- Down Migration

alter table bases drop column replica_reads;
