-- Up Migration

-- [{"tableId", "fieldId", "table", "column", "kind"}]: the source's ids, and the SQL names as they were last seen.
alter table bases add column indexes jsonb not null default '[]';
comment on column bases.indexes is 'indexes that the replica has on columns of its tables';

-- Down Migration

alter table bases drop column indexes;
