-- Changes the shape of tables: builds and swaps, renames, drops, and the catalog. Installed with install.sql.

-- lock_relations(names, deadline): locks these tables of ours exclusively. BT003: one is somebody else's.
create or replace function {{swap}}.lock_relations(p_names text[], p_deadline timestamptz) returns void
language plpgsql as $lock_relations$
declare
  name text;
begin
  for name in select distinct n from unnest(p_names) as n order by n loop
    perform {{swap}}.wait_until(p_deadline);
    perform {{swap}}.own_kind(name);
    if {{swap}}.is_dumped(to_regclass(format('{{schema}}.%I', name))) then
      raise exception 'pg_dump reads table %', name using errcode = 'lock_not_available';
    end if;
    execute format('lock table {{schema}}.%I in access exclusive mode', name);
    perform {{swap}}.own_kind(name);
  end loop;
end $lock_relations$;

-- lock_patience(tables, timeout): how long a change waits for locks on these tables. If only an autovacuum holds them,
-- it waits longer than deadlock_timeout: after that time Postgres cancels an autovacuum that blocks others.
create or replace function {{swap}}.lock_patience(p_tables oid[], p_timeout interval) returns interval
language sql as $lock_patience$
  -- Without a user it is a process of Postgres' own. Every role may see the user of a session.
  select case when bool_and(s.usesysid is null) then
      greatest(p_timeout, current_setting('deadlock_timeout')::interval + interval '250 ms') else p_timeout end
  from pg_locks as l join pg_stat_activity as s on s.pid = l.pid
  where l.locktype = 'relation' and l.granted and l.pid <> pg_backend_pid()
    and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    and l.relation in (
      select c.oid from pg_class as c where c.oid = any (p_tables)
      union all select c.reltoastrelid from pg_class as c where c.oid = any (p_tables))
$lock_patience$;

-- probe_table(name, timeout): raises a lock error if the table could not be locked now, and leaves it as it was. Slow
-- work can then come before the lock without being wasted while a query holds the table.
create or replace function {{swap}}.probe_table(p_name text, p_timeout text) returns void
language plpgsql as $probe_table$
begin
  perform {{swap}}.lock_relations(array[p_name], clock_timestamp() + {{swap}}.lock_patience(
    array[format('{{schema}}.%I', p_name)::regclass::oid], p_timeout::interval));
  raise exception 'free' using errcode = 'BT005';
exception when sqlstate 'BT005' then null;
end $probe_table$;

-- change_shape(…): runs DDL and sets catalog rows, all or nothing. BT002: one of the tables has another shape than the
-- one that the change was planned for.
--   p_timeout     longest wait for all locks together, and so the longest time that readers wait behind us
--   p_notes       statements that touch none of the locked tables: run before other sessions wait for us
--   p_locked      tables that p_statements lock, by name
--   p_tables      [{table_id, name, shape (current), spec, apply_sql, read_as}]      p_dropped  table ids, dropped with their issues
--   p_settled     sessions that read the catalog and had time to lock what they found; null: all of them
drop function if exists {{swap}}.change_shape(bigint, text, text[], text[], text[], jsonb, text[]);
create or replace function {{swap}}.change_shape(
  p_epoch bigint, p_timeout text, p_notes text[], p_locked text[], p_statements text[], p_tables jsonb,
  p_dropped text[], p_settled text[] default null
) returns void language plpgsql as $change$
declare
  v_dropped text[];
  v_orphans jsonb;
  v_comments text[];
  v_going oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
  v_relations jsonb;
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(id)
  from (
    select value ->> 'table_id' as id from jsonb_array_elements(p_tables)
    union select unnest(p_dropped) order by id
  ) as touched;
  if exists (
    select from jsonb_to_recordset(p_tables) as p (table_id text, shape integer)
      left join {{swap}}._tables as t using (table_id) where t.shape is distinct from p.shape
  ) then
    raise exception 'a table now has another shape' using errcode = 'BT002';
  end if;
  v_dropped := array(select t.name from {{swap}}._tables as t where t.table_id = any (p_dropped));
  delete from {{swap}}._sync_issues where table_name = any (v_dropped);
  v_dropped := array(select n from unnest(v_dropped) as n where {{swap}}.live_table(n) is not null);
  foreach one in array p_notes loop
    execute one;
  end loop;
  -- Includes those that are locked below: comments need no lock of ours.
  perform {{swap}}.own_table(t.name)
  from {{swap}}._tables as t join jsonb_to_recordset(p_tables) as p (table_id text) using (table_id);
  v_orphans := {{swap}}.orphans_of(p_dropped);
  v_comments := {{swap}}.others_comments(array(select p.table_id from jsonb_to_recordset(p_tables) as p (table_id text)));
  perform {{swap}}.lock_for_links();
  v_relations := {{swap}}.relations_of(
    p_dropped || array(select p.table_id from jsonb_to_recordset(p_tables) as p (table_id text)));
  delete from {{swap}}._recent_writes where table_id = any (p_dropped);
  delete from {{swap}}._tables where table_id = any (p_dropped);
  perform {{swap}}.set_catalog(p_tables);

  -- The time to find out what must be locked does not count: there may be a thousand views.
  v_going := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + {{swap}}.lock_patience(
    array(select format('{{schema}}.%I', name)::regclass::oid from unnest(p_locked || v_dropped) as name),
    p_timeout::interval);
  v_views := {{swap}}.lock_views(
    array(select format('{{schema}}.%I', name)::regclass::oid from unnest(v_dropped) as name)
      || v_going, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  perform {{swap}}.lock_relations(p_locked || v_dropped, v_deadline);
  perform {{swap}}.clear_aliases(v_relations);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  perform {{swap}}.drop_tables(v_orphans);
  foreach one in array p_statements || v_comments loop
    execute one;
  end loop;
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
  perform {{swap}}.may_change(p_settled) where cardinality(p_locked || v_dropped) > 0;
end $change$;

-- set_catalog(tables): inserts or replaces these rows of the catalog, with a new shape each.
-- Names that are lost become aliases.
create or replace function {{swap}}.set_catalog(p_tables jsonb) returns void language sql as $catalog$
  select {{swap}}.record_aliases(p_tables);
  insert into {{swap}}._tables as known (table_id, name, shape, spec, apply_sql, read_as)
  select t.table_id, t.name, nextval('{{swap}}._shapes'), t.spec, t.apply_sql, t.read_as
  from jsonb_to_recordset(p_tables)
    as t (table_id text, name text, spec jsonb, apply_sql text, read_as jsonb)
  on conflict (table_id) do update
    set name = excluded.name, shape = excluded.shape, spec = excluded.spec, apply_sql = excluded.apply_sql,
      read_as = coalesce(excluded.read_as, known.read_as)
$catalog$;

-- mark_read(epoch, table, read_as): records that all cells of the table have been read.
create or replace function {{swap}}.mark_read(p_epoch bigint, p_table text, p_read_as jsonb) returns void
language plpgsql as $mark_read$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._tables set read_as = p_read_as where table_id = p_table;
end $mark_read$;

-- swap_in(…): replaces the live table by one that was built in {{swap}}. False, with nothing done, if the recent-writes
-- log has an image for this table that the caller has not seen (p_seen): read it and call again.
-- BT002: the live table has another shape than p_shape (null: there is none).
--   p_timeout   longest wait for all locks together
--   p_built     the new table's name in {{swap}}      p_table  its row of the catalog
--   p_renames   statements that rename columns of the live table as in the new one: views follow
--   p_settled   sessions that read the catalog and had time to lock what they found; null: all of them
drop function if exists {{swap}}.swap_in(bigint, text, bigint, integer, text, jsonb, text[], json);
create or replace function {{swap}}.swap_in(
  p_epoch bigint, p_timeout text, p_seen bigint, p_shape integer, p_built text, p_table jsonb, p_renames text[],
  p_issues json, p_settled text[] default null
) returns boolean language plpgsql as $swap$
declare
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
  -- Name and id of the replaced table: the catalog's table or a leftover.
  v_old text;
  v_relation oid;
  is_whole boolean;
  v_additions jsonb := '[]';
  v_changes jsonb;
  v_sequences jsonb := '[]';
  v_going oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(p_table ->> 'table_id');
  if exists (
    select from {{swap}}._recent_writes as j where j.table_id = p_table ->> 'table_id' and j.applied_version > p_seen
  ) then
    return false;
  end if;
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', v_name, v_live.shape, p_shape using errcode = 'BT002';
  end if;
  is_whole := v_live.name is not null and not v_live.spec ? 'isDamaged';
  if v_live.name is null then
    v_live := {{swap}}.leftover_row(p_table ->> 'table_id');
  end if;
  if {{swap}}.live_table(v_live.name) is not null then
    v_old := v_live.name;
    perform {{swap}}.probe_table(v_old, p_timeout);
    perform {{swap}}.own_table(v_old);
  end if;
  -- Slow work comes before the locks that readers notice.
  delete from {{swap}}._sync_issues where table_name = v_live.name and record_id <> '';
  update {{swap}}._sync_issues as i set table_name = v_name
  where i.table_name = v_live.name and v_name <> v_live.name and not exists (
    select from {{swap}}._sync_issues as o where (o.table_name, o.record_id, o.field) = (v_name, i.record_id, i.field));
  insert into {{swap}}._sync_issues (table_name, record_id, field, value, reason)
  select v_name, i.record_id, i.field, i.value, i.reason
  from json_to_recordset(p_issues) as i (record_id text, field text, value text, reason text);
  perform {{swap}}.grant_reads(format('{{swap}}.%I', p_built)::regclass, v_old);
  if v_old is null then
    v_additions := {{swap}}.adopt_additions(p_table, p_built);
  else
    v_relation := {{swap}}.live_table(v_old);
    v_additions := {{swap}}.additions_for(v_live, p_table);
    perform {{swap}}.prepare_build(v_additions, v_relation, v_live.spec, format('{{swap}}.%I', p_built), v_name);
  end if;
  -- Data that was lost here is no change in the source.
  if (is_whole or v_old is null and v_live.name is null) and (select s.history from {{swap}}._state as s) then
    perform {{swap}}.record_swap(v_live, p_built, p_table);
  end if;
  if is_whole then
    v_changes := {{swap}}.publication_changes(v_live, p_built, p_table);
  end if;
  perform {{swap}}.lock_for_links();
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));

  v_going := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + p_timeout::interval;
  if v_old is not null then
    v_deadline := clock_timestamp() + {{swap}}.lock_patience(
      array[format('{{schema}}.%I', v_old)::regclass::oid], p_timeout::interval);
  end if;
  v_views := {{swap}}.lock_views(
    array(select format('{{schema}}.%I', v_old)::regclass::oid where v_old is not null)
      || v_going, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  if v_old is not null then
    perform {{swap}}.lock_relations(array[v_old], v_deadline);
    perform {{swap}}.clear_aliases(jsonb_build_object(p_table ->> 'table_id', v_relation));
    perform {{swap}}.publish_deletes(v_changes, v_old);
    foreach one in array p_renames loop
      execute one;
    end loop;
  end if;
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  if v_old is not null then
    perform {{swap}}.drop_alias_functions(v_relation, p_table ->> 'table_id');
    v_sequences := {{swap}}.free_sequences(v_relation);
    if {{swap}}.keep_values(v_relation, v_live, v_additions, v_name) then
      perform {{swap}}.put_aside(v_relation, p_table ->> 'table_id');
    else
      perform {{swap}}.drop_own(v_relation, p_table ->> 'table_id');
    end if;
  end if;
  perform {{swap}}.free_part_names(format('{{swap}}.%I', p_built)::regclass);
  perform {{swap}}.move_relation(format('{{swap}}.%I', p_built)::regclass, '{{schema}}', v_name);
  perform {{swap}}.carry_over(v_additions, 'live', '[0,30)', format('{{schema}}.%I', v_name), v_name);
  perform {{swap}}.publish_rows(v_changes, v_name);
  perform {{swap}}.own_sequences(v_sequences, v_name);
  perform {{swap}}.move_dependents(p_table ->> 'table_id', v_name, v_deadline);
  perform {{swap}}.drop_kept();
  perform {{swap}}.strip_kept(v_relation) where v_relation = any ({{swap}}.kept_relations());
  perform {{swap}}.settle_statistics(v_additions, format('{{schema}}.%I', v_name), v_name);
  perform {{swap}}.carry_over(v_additions, 'live', '[30,)', format('{{schema}}.%I', v_name), v_name);
  update {{swap}}._tables
  set columns_since = nextval('{{swap}}._versions'), file = pg_relation_filenode({{swap}}.live_table(v_name))
  where table_id = p_table ->> 'table_id';
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
  if (select s.notify from {{swap}}._state as s) then
    perform {{swap}}.notify_listeners(jsonb_build_object('table', v_name, 'rebuilt', true));
  end if;
  perform {{swap}}.may_change(p_settled);
  return true;
end $swap$;

-- shape_build(…): runs the DDL of a table that is being built, which no other session sees.
create or replace function {{swap}}.shape_build(p_epoch bigint, p_statements text[]) returns void
language plpgsql as $shape_build$
declare
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  foreach one in array p_statements loop
    execute one;
  end loop;
end $shape_build$;

-- drop_build(epoch, name, settled): drops a table that was being built, if it exists. A dump may hold it until the dump
-- ends.
create or replace function {{swap}}.drop_build(p_epoch bigint, p_name text, p_settled text[]) returns void
language plpgsql as $drop_build$
declare
  v_build regclass := to_regclass(format('{{swap}}.%I', p_name));
begin
  perform {{swap}}.fence(p_epoch);
  if v_build is null then
    return;
  end if;
  if {{swap}}.is_dumped(v_build) then
    raise exception 'pg_dump reads table %', v_build using errcode = 'lock_not_available';
  end if;
  perform set_config('lock_timeout', '1s', true);
  execute format('drop table {{swap}}.%I', p_name);
  perform {{swap}}.may_change(p_settled);
end $drop_build$;

-- drop_builds(epoch, kept): drops tables that ended leases were building, except these. Tables that others hold are
-- left for the next time.
create or replace function {{swap}}.drop_builds(p_epoch bigint, p_kept text[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $drop_builds$
declare
  one name;
begin
  perform {{swap}}.fence(p_epoch);
  for one in
    select c.relname from pg_class as c
    where c.relnamespace = '{{swap}}'::regnamespace and c.relkind = 'r' and c.relname !~ '^_' and c.relname <> all (p_kept)
      and exists (select from pg_constraint as k where k.conrelid = c.oid and k.conname = format('_%s_pkey', c.relname))
      and c.relowner = {{swap}}.our_role()
  loop
    begin
      perform {{swap}}.drop_build(p_epoch, one, '{}');
    exception when lock_not_available or deadlock_detected or dependent_objects_still_exist or sqlstate 'BT007' then null;
    end;
  end loop;
end $drop_builds$;

-- append_rows(…): writes mapped rows into a table that is being built, with the statement that the builder generated
-- for it.
create or replace function {{swap}}.append_rows(p_epoch bigint, p_statement text, p_rows json, p_gone text[])
returns void language plpgsql as $append$
begin
  perform {{swap}}.fence(p_epoch);
  execute p_statement using p_rows, p_gone;
end $append$;
