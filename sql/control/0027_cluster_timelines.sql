-- Up Migration

-- The timeline that the cluster's server was last seen to write: another one means that a standby was promoted, or a backup
-- put back, and that the leases of its bases are to begin again. Null: never seen, or the server does not tell.
alter table clusters add column timeline text;

-- Down Migration

alter table clusters drop column timeline;
