-- Sessions that read the catalog and lock later what they found there, as pg_dump does. Installed with install.sql.
--
-- pg_dump lists tables as of its snapshot, and then locks them by their names. What is dropped in between fails it, and a
-- table that is swapped in between is dumped as another one, with the rows that its snapshot shows of that: some, or none.
-- So such a session is given time to lock what it has found: core/replica/catalog-readers.ts.

-- catalog_readers(tables): sessions of others that list schemas, tables, extensions or roles, which locks the catalog until
-- their transaction ends, and have no lock on each of these tables. A name for each and its transaction.
create or replace function {{swap}}.catalog_readers(p_tables oid[]) returns setof text
language sql as $catalog_readers$
  with held as materialized (
    select l.pid, l.virtualtransaction as transaction, l.relation
    from pg_locks as l
    where l.locktype = 'relation' and l.granted and l.pid <> pg_backend_pid()
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
  )
  select distinct h.pid || ' ' || h.transaction
  from held as h join pg_stat_activity as s on s.pid = h.pid
  -- No user: a process of Postgres' own.
  where s.usesysid is not null and h.relation in ('pg_class'::regclass, 'pg_namespace'::regclass, 'pg_extension'::regclass,
      'pg_roles'::regclass)
    and not (s.usesysid = {{swap}}.our_role() and s.application_name = 'basetide')
    and not p_tables <@ array(select o.relation from held as o where o.pid = h.pid)
$catalog_readers$;

-- may_change(settled): errs as busy where a session reads the catalog that is none of these; null is all. The last thing
-- that a change does: a dump that begins between this and the commit fails, as a table that it has found is gone.
create or replace function {{swap}}.may_change(p_settled text[]) returns void language plpgsql as $may_change$
begin
  -- Else pg_stat_activity shows the sessions of when this transaction first asked.
  perform pg_stat_clear_snapshot();
  -- None has a lock on the tables: we have.
  if exists (select from {{swap}}.catalog_readers(array[0::oid]) as r (reader) where r.reader <> all (p_settled)) then
    raise exception 'a session reads the catalog, and may lock the table next' using errcode = 'lock_not_available';
  end if;
end $may_change$;
