-- Detects sessions that read the catalog and later lock what they found there, as pg_dump does. Installed with
-- install.sql.
--
-- pg_dump lists tables as of its snapshot, and then locks them by name. If a table is dropped in between, the dump
-- fails; if a column is dropped or renamed in between, its statements name one that is no longer there. So
-- such a session gets time to lock what it found: core/replica/catalog-readers.ts.

-- is_dump(application_name): returns whether the session is pg_dump's or pg_dumpall's. Every role may see the name.
create or replace function {{swap}}.is_dump(p_name text) returns boolean language sql immutable as $is_dump$
  select coalesce(p_name ~ '^pg_dump', false)
$is_dump$;

-- lock_exclusively(table, deadline): locks a table of ours (qualified) against readers as well. If only an autovacuum holds
-- it, waits longer than deadlock_timeout: after that time Postgres cancels an autovacuum that blocks others.
--
-- While a pg_dump is connected, the lock is not waited for. The workers of a parallel dump lock tables that their leader has
-- locked, and fail if they would have to wait: not even a request for this lock may be there then. A dump that connects
-- later has nothing locked yet, and its leader waits for us.
create or replace function {{swap}}.lock_exclusively(p_table text, p_deadline timestamptz) returns void
language plpgsql as $lock_exclusively$
declare
  v_deadline timestamptz;
begin
  begin
    execute format('lock table %s in access exclusive mode nowait', p_table);
    return;
  exception when lock_not_available then null;
  end;
  -- Otherwise pg_stat_activity shows the sessions as of this transaction's first query.
  perform pg_stat_clear_snapshot();
  if exists (
    select from pg_stat_activity as s where s.datname = current_database() and {{swap}}.is_dump(s.application_name)
  ) then
    raise exception 'table % is in use, and a pg_dump is connected', p_table using errcode = 'lock_not_available';
  end if;
  -- Without a user it is a process of Postgres' own. Every role may see the user of a session.
  select case when bool_and(s.usesysid is null) then greatest(
      p_deadline, clock_timestamp() + current_setting('deadlock_timeout')::interval + interval '250 ms') else p_deadline end
  into v_deadline
  from pg_class as c
    join pg_locks as l on l.locktype = 'relation' and l.granted and l.pid <> pg_backend_pid()
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and l.relation in (c.oid, c.reltoastrelid)
    join pg_stat_activity as s on s.pid = l.pid
  where c.oid = to_regclass(p_table);
  perform {{swap}}.wait_until(v_deadline);
  execute format('lock table %s in access exclusive mode', p_table);
end $lock_exclusively$;

-- catalog_readers(tables): sessions other than ours that lack a lock on at least one of these tables, and that either
-- hold locks on the catalog of schemas, tables, extensions or roles until their transaction ends, or are dumps that
-- have just connected and are about to list them. Returns an id of the session and its transaction, and its number of
-- locks, which grows while a dump locks what it found. A dump that holds one of the tables is waited for by means of
-- their locks, with its workers.
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
    -- Without a user it is a process of Postgres' own.
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

-- may_change(settled): raises BT007 if a session other than these reads the catalog; null stands for all sessions. The
-- last step of a change: a dump that connects and lists the tables between this and the end of the commit fails,
-- because a table that it found no longer exists.
create or replace function {{swap}}.may_change(p_settled text[]) returns void language plpgsql as $may_change$
begin
  -- Otherwise pg_stat_activity shows the sessions as of this transaction's first query.
  perform pg_stat_clear_snapshot();
  -- None of them has a lock on the tables, because we hold it.
  if exists (select from {{swap}}.catalog_readers(array[0::oid]) as r where r.reader <> all (p_settled)) then
    raise exception 'a session reads the catalog, and may lock the table next' using errcode = 'BT007';
  end if;
end $may_change$;
