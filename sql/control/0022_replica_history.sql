-- Up Migration

-- What the replica was when its last lease began: another server, another timeline or an epoch that has been there before
-- mean that it may have lost commits.
alter table bases add column replica_identity text, add column replica_epoch bigint;

-- Down Migration

alter table bases drop column replica_identity, drop column replica_epoch;
