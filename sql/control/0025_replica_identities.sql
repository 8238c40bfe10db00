-- Up Migration

-- Where a publication names all tables of the database, Postgres updates and deletes only in those with a primary key or
-- a replica identity.
alter table alert_clock replica identity full;
alter table watchdog_clock replica identity full;
alter table alert_states replica identity full;
alter table alert_notices replica identity full;

-- Down Migration

alter table alert_clock replica identity default;
alter table watchdog_clock replica identity default;
alter table alert_states replica identity default;
alter table alert_notices replica identity default;
