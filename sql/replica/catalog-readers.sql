-- Sessions that read the catalog and lock later what they found there, as pg_dump does. Installed with install.sql.
--
-- pg_dump lists tables as of its snapshot, and then locks them by their names. What is dropped in between fails it, and a
-- table that is swapped in between is dumped as another one, with the rows that its snapshot shows of that: some, or none.
-- So such a session is given time to lock what it has found: core/replica/catalog-readers.ts.

-- is_dump(application_name): is the session pg_dump's or pg_dumpall's? Every role may see the name.
create or replace function {{swap}}.is_dump(p_name text) returns boolean language sql immutable as $is_dump$
  select coalesce(p_name ~ '^pg_dump', false)
$is_dump$;

-- is_dumped(table): does a pg_dump hold it? The workers of a parallel dump lock tables that their leader has locked, and fail
-- where they would have to wait: no lock that excludes readers may even be asked for.
create or replace function {{swap}}.is_dumped(p_table oid) returns boolean language sql as $is_dumped$
  select exists (
    select from pg_locks as l join pg_stat_activity as s on s.pid = l.pid
    where l.locktype = 'relation' and l.granted and l.relation = p_table
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and {{swap}}.is_dump(s.application_name))
$is_dumped$;

-- catalog_readers(tables): sessions of others that have no lock on each of these tables, and list schemas, tables, extensions
-- or roles, which locks the catalog until their transaction ends; or are dumps that have connected, and list them in a moment.
-- A name for each and its transaction, and how many locks it has: more and more, while a dump locks what it found. A dump that
-- has one of the tables is waited for by their locks, with its workers.
create or replace function {{swap}}.catalog_readers(p_tables oid[]) returns table (reader text, locks integer)
language sql as $catalog_readers$
  with held as materialized (
    select l.pid, l.virtualtransaction as transaction, l.relation
    from pg_locks as l
    where l.locktype = 'relation' and l.granted and l.pid <> pg_backend_pid()
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
  ), sessions as materialized (
    select s.pid, {{swap}}.is_dump(s.application_name) as is_dump,
      array(select h.relation from held as h where h.pid = s.pid) as relations,
      (select min(h.transaction) from held as h where h.pid = s.pid) as transaction
    from pg_stat_activity as s
    -- No user: a process of Postgres' own.
    where s.usesysid is not null and s.pid <> pg_backend_pid() and s.datname = current_database()
      and not (s.usesysid = {{swap}}.our_role() and s.application_name = 'basetide')
  )
  select s.pid || ' ' || case when s.is_dump then 'dump' else s.transaction end, cardinality(s.relations)
  from sessions as s
  where not p_tables <@ s.relations
    and case when s.is_dump then not exists (select from sessions as o where o.is_dump and o.relations && p_tables)
      else s.relations && array['pg_class'::regclass, 'pg_namespace'::regclass, 'pg_extension'::regclass,
        'pg_roles'::regclass]::oid[] end
$catalog_readers$;

-- may_change(settled): errs with BT007 where a session reads the catalog that is none of these; null is all. The last thing
-- that a change does: a dump that connects and lists the tables between this and the end of the commit fails, as one that it
-- has found is gone.
create or replace function {{swap}}.may_change(p_settled text[]) returns void language plpgsql as $may_change$
begin
  -- Else pg_stat_activity shows the sessions of when this transaction first asked.
  perform pg_stat_clear_snapshot();
  -- None has a lock on the tables: we have.
  if exists (select from {{swap}}.catalog_readers(array[0::oid]) as r where r.reader <> all (p_settled)) then
    raise exception 'a session reads the catalog, and may lock the table next' using errcode = 'BT007';
  end if;
end $may_change$;
