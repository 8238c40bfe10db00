-- Changes the shape of tables: builds, first tables, renames, drops, and the catalog. Installed with install.sql.

-- lock_relations(names, deadline): locks these tables of ours exclusively. BT003: one is somebody else's.
create or replace function {{swap}}.lock_relations(p_names text[], p_deadline timestamptz) returns void
language plpgsql as $lock_relations$
declare
  name text;
begin
  for name in select distinct n from unnest(p_names) as n order by n loop
    perform {{swap}}.own_kind(name);
    perform {{swap}}.lock_exclusively(format('{{schema}}.%I', name), p_deadline);
    perform {{swap}}.own_kind(name);
  end loop;
end $lock_relations$;

-- probe_table(name): raises a lock error if the table could not be locked now, and leaves it as it was. Slow
-- work can then come before the lock without being wasted while a query holds the table.
create or replace function {{swap}}.probe_table(p_name text) returns void
language plpgsql as $probe_table$
begin
  perform {{swap}}.lock_relations(array[p_name], {{swap}}.soon());
  raise exception 'free' using errcode = 'BT005';
exception when sqlstate 'BT005' then null;
end $probe_table$;

-- change_shape(...): runs DDL and sets catalog rows, all or nothing. BT002: one of the tables has another shape than the
-- one that the change was planned for.
--   p_notes       statements that touch none of the locked tables: run before other sessions wait for us
--   p_locked      tables that p_statements lock, by name
--   p_tables      [{table_id, name, shape (current), spec, read_as}]      p_dropped  table ids, dropped with their issues
--   p_settled     sessions that read the catalog and had time to lock what they found; null: all of them
create or replace function {{swap}}.change_shape(
  p_epoch bigint, p_notes text[], p_locked text[], p_statements text[], p_tables jsonb,
  p_dropped text[], p_settled text[] default null
) returns void language plpgsql as $change$
declare
  v_dropped text[];
  v_orphans {{swap}}._tables[];
  v_comments text[];
  v_views jsonb[];
  v_relations jsonb;
  one text;
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.wait_until({{swap}}.soon());
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
  select min({{swap}}.taken_name(t, p.value)) into one
  from jsonb_array_elements(p_tables) as p join {{swap}}._tables as t on t.table_id = p.value ->> 'table_id';
  if one is not null then
    raise exception '%', one using errcode = 'BT003';
  end if;
  v_dropped := array(select t.name from {{swap}}._tables as t where t.table_id = any (p_dropped));
  delete from {{swap}}._sync_issues where table_name = any (v_dropped);
  v_dropped := array(select n from unnest(v_dropped) as n where {{swap}}.live_table(n) is not null);
  perform {{swap}}.run_all(p_notes);
  -- Includes those that are locked below: comments need no lock of ours.
  perform {{swap}}.own_table(t.name)
  from {{swap}}._tables as t join jsonb_to_recordset(p_tables) as p (table_id text) using (table_id);
  v_orphans := array(select t from {{swap}}._tables as t where t.table_id = any (p_dropped) and {{swap}}.live_table(t.name) is not null);
  v_comments := {{swap}}.others_comments(array(
    select t from {{swap}}._tables as t join jsonb_to_recordset(p_tables) as p (table_id text) using (table_id)));
  perform {{swap}}.lock_for_links();
  v_relations := {{swap}}.relations_of(
    p_dropped || array(select p.table_id from jsonb_to_recordset(p_tables) as p (table_id text)));
  delete from {{swap}}._recent_writes where table_id = any (p_dropped);
  delete from {{swap}}._column_names where table_id = any (p_dropped);
  delete from {{swap}}._tables where table_id = any (p_dropped);
  perform {{swap}}.set_catalog(p_tables);

  v_views := (select l.views from {{swap}}.lock_all(
    array(select {{swap}}.live_table(n) from unnest(v_dropped) as n), p_locked || v_dropped) as l);
  perform {{swap}}.clear_aliases(v_relations);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  perform {{swap}}.drop_table(o) from unnest(v_orphans) as o;
  perform {{swap}}.run_all(p_statements || v_comments);
  perform {{swap}}.run_all(array(
    select format('drop function if exists {{swap}}.%I', 'apply_row_images_' || id) from unnest(p_dropped) as id));
  perform {{swap}}.make_apply(p.table_id) from jsonb_to_recordset(p_tables) as p (table_id text);
  perform {{swap}}.make_again(v_views);
  perform {{swap}}.may_change(p_settled) where cardinality(p_locked || v_dropped) > 0;
end $change$;

-- locked_row(table_id, shape): locks the table against other writers until the transaction ends, and returns its row of
-- the catalog. BT002: it has another shape (null: there is none).
create or replace function {{swap}}.locked_row(p_table text, p_shape integer) returns {{swap}}._tables
language plpgsql as $locked_row$
declare
  v_row {{swap}}._tables;
begin
  perform {{swap}}.lock_table(p_table);
  select * into v_row from {{swap}}._tables as t where t.table_id = p_table;
  if v_row.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', coalesce(v_row.name, p_table), v_row.shape, p_shape using errcode = 'BT002';
  end if;
  return v_row;
end $locked_row$;

-- is_behind(table_id, seen): the recent-writes log has an image of the table that the caller has not seen.
create or replace function {{swap}}.is_behind(p_table text, p_seen bigint) returns boolean language sql as $is_behind$
  select exists (select from {{swap}}._recent_writes as j where j.table_id = p_table and j.applied_version > p_seen)
$is_behind$;

-- record_names(tables): records since when the names of these rows of the catalog mean what they mean. The caller has
-- locked the tables: nothing is recorded under a previous meaning of a name after that.
create or replace function {{swap}}.record_names(p_tables jsonb) returns void language plpgsql as $record_names$
begin
  delete from {{swap}}._column_names as n
  using jsonb_to_recordset(p_tables) as t (table_id text, spec jsonb)
  where n.table_id = t.table_id and n.name <> 'id'
    and not exists (select from jsonb_to_recordset(t.spec -> 'columns') as c (name text) where c.name = n.name);
  insert into {{swap}}._column_names as known (table_id, name, table_name, field_id, is_hashed, since)
  select t.table_id, c.name, t.name, c.field_id, c.is_hashed, clock_timestamp()
  from jsonb_to_recordset(p_tables) as t (table_id text, name text, spec jsonb)
    cross join lateral (
      select 'id', '', false
      union all
      select f.name, f."fieldId", f.type = 'hashed'
      from jsonb_to_recordset(t.spec -> 'columns') as f (name text, "fieldId" text, type text)
    ) as c (name, field_id, is_hashed)
  on conflict (table_id, name) do update
    set table_name = excluded.table_name, field_id = excluded.field_id, is_hashed = excluded.is_hashed,
      since = excluded.since
    where (known.table_name, known.field_id, known.is_hashed)
      is distinct from (excluded.table_name, excluded.field_id, excluded.is_hashed);
end $record_names$;

-- set_catalog(tables): inserts or replaces these rows of the catalog, with a new shape each.
-- Names that are lost become aliases.
create or replace function {{swap}}.set_catalog(p_tables jsonb) returns void language plpgsql as $catalog$
begin
  if (select s.alias_days > 0 from {{swap}}._state as s) then
    perform {{swap}}.record_aliases(p_tables);
  end if;
  perform {{swap}}.record_names(p_tables);
  perform {{swap}}.record_written_types(p_tables);
  insert into {{swap}}._tables as known (table_id, name, shape, spec, read_as)
  select t.table_id, t.name, nextval('{{swap}}._shapes'), t.spec, t.read_as
  from jsonb_to_recordset(p_tables)
    as t (table_id text, name text, spec jsonb, read_as jsonb)
  on conflict (table_id) do update
    set name = excluded.name, shape = excluded.shape, spec = excluded.spec,
      read_as = coalesce(excluded.read_as, known.read_as);
end $catalog$;

-- The table of the names may have been dropped.
select {{swap}}.record_names(coalesce(jsonb_agg(to_jsonb(t)), '[]')) from {{swap}}._tables as t;

-- mark_read(epoch, table, read_as): records that all cells of the table have been read.
create or replace function {{swap}}.mark_read(p_epoch bigint, p_table text, p_read_as jsonb) returns void
language plpgsql as $mark_read$
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._tables set read_as = p_read_as where table_id = p_table;
end $mark_read$;

-- move_in(...): makes a table that was built in {{swap}} live, as the first one of its id. `behind`, with nothing done, if the
-- recent-writes log has an image for this table that the caller has not seen (p_seen): read it and call again. `occupied`:
-- the live table is there: merge (merge.sql). BT002: the catalog has another shape than p_shape (null: none).
--   p_built     the new table's name in {{swap}}      p_table  its row of the catalog
--   p_settled   sessions that read the catalog and had time to lock what they found; null: all of them
create or replace function {{swap}}.move_in(
  p_epoch bigint, p_seen bigint, p_shape integer, p_built text, p_table jsonb, p_issues json,
  p_settled text[]
) returns text language plpgsql as $move_in$
declare
  v_id text := p_table ->> 'table_id';
  v_key text := format('{{schema}}.%I', '_' || (p_table ->> 'table_id') || '_pkey');
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
  v_old oid;
  v_has_views boolean;
  v_views jsonb[];
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.wait_until({{swap}}.soon());
  v_live := {{swap}}.locked_row(v_id, p_shape);
  if {{swap}}.is_behind(v_id, p_seen) then
    return 'behind';
  end if;
  v_old := {{swap}}.live_table(v_live.name);
  if v_old is not null and not v_live.spec ? 'isReplaced'
    or exists (select from {{swap}}._kept_tables as k where k.table_id = v_id)
    -- All tables are searched only if a leftover may be there: it has the name of the key, or the name that is left to it.
    or v_live.name is null
      and coalesce(to_regclass(v_key), to_regclass(format('{{schema}}.%I', v_name))) is not null
      and exists (select from {{swap}}.leftovers() as l where l.table_id = v_id)
  then
    return 'occupied';
  end if;
  -- An autovacuum may hold it.
  perform {{swap}}.lock_exclusively(format('{{swap}}.%I', p_built), {{swap}}.soon());
  perform {{swap}}.wait_until({{swap}}.soon());
  if v_old is not null then
    perform {{swap}}.probe_table(v_live.name);
    perform {{swap}}.own_table(v_live.name);
  end if;
  -- Slow work comes before the locks that readers notice.
  perform {{swap}}.replace_issues(v_live.name, v_name, p_issues);
  perform {{swap}}.grant_reads(format('{{swap}}.%I', p_built)::regclass);
  -- Data that was lost here is no change in the source.
  if v_live.name is null and (select s.history from {{swap}}._state as s) then
    perform {{swap}}.record_names(jsonb_build_array(p_table));
    perform {{swap}}.record_first(p_built, v_name);
  end if;
  perform {{swap}}.lock_for_links();
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));

  v_has_views := v_old is not null or {{swap}}.has_views(p_table);
  if v_has_views then
    v_views := (select l.views from {{swap}}.lock_all(array_remove(array[v_old], null),
      case when v_old is not null then array[v_live.name] else '{}' end) as l);
    if v_old is not null then
      perform {{swap}}.clear_aliases(jsonb_build_object(v_id, v_old));
    end if;
    perform {{swap}}.rename_link_views();
    v_views := {{swap}}.drop_views(v_views);
    perform {{swap}}.drop_link_views();
  end if;
  if v_old is not null then
    perform {{swap}}.drop_alias_functions(v_old, v_id);
    -- An object that needs it prevents the change: its owner has to drop it.
    execute format('drop table %s', v_old::regclass);
  end if;
  if to_regclass(v_key) is not null then
    perform {{swap}}.free_part_names(format('{{swap}}.%I', p_built)::regclass);
  end if;
  perform {{swap}}.move_relation(format('{{swap}}.%I', p_built)::regclass, '{{schema}}', v_name);
  perform {{swap}}.make_apply(v_id);
  update {{swap}}._tables
  set columns_since = nextval('{{swap}}._versions'), file = {{swap}}.own_file(v_name)
  where table_id = v_id;
  if v_has_views then
    perform {{swap}}.make_again(v_views);
  end if;
  perform {{swap}}.notify_rebuilt(v_name);
  perform {{swap}}.may_change(p_settled);
  return 'moved';
end $move_in$;

-- replace_table(name, forced): has the table copied into a new one by the next sync (move_in). Returns what others have
-- put on it and would lose; unless forced, nothing is done if there is any. BT003: something needs the table.
create or replace function {{swap}}.replace_table(p_name text, p_forced boolean) returns text[]
language plpgsql as $replace_table$
declare
  v_table oid := {{swap}}.live_table(p_name);
  v_needing text := (
    select string_agg(n, ', ' order by n) from (
      select d.description from {{swap}}.dependents_of(array[v_table]) as d
      union all
      select 'view ' || d.view::regclass from {{swap}}.dependent_views(array[v_table]) as d join pg_class as c on c.oid = d.view
      where not {{swap}}.may_act_as(pg_get_userbyid(c.relowner))) as o (n));
  v_lost text[] := array(
    select o from {{swap}}._tables as t cross join {{swap}}.others_on(v_table, t.spec) as o
    where t.name = p_name and o not in (select 'view ' || d.view::regclass from {{swap}}.dependent_views(array[v_table]) as d) order by 1);
begin
  perform {{swap}}.fence(null);
  if v_needing is not null then
    raise exception 'the table % is needed by % and cannot be replaced: drop them first', {{swap}}.shown_name(p_name), v_needing
      using errcode = 'BT003';
  end if;
  if v_lost = '{}' or p_forced then
    update {{swap}}._tables set spec = spec || '{"isDamaged": true, "isReplaced": true}', shape = nextval('{{swap}}._shapes')
    where name = p_name;
  end if;
  return v_lost;
end $replace_table$;

-- column_slots(): how many of the 1,600 columns that Postgres allows each table has used, and how many of these were dropped.
create or replace function {{swap}}.column_slots() returns table (name text, used integer, dropped integer)
language sql stable as $column_slots$
  select t.name, count(*)::integer, (count(*) filter (where a.attisdropped))::integer
  from {{swap}}._tables as t join pg_attribute as a on a.attrelid = {{swap}}.live_table(t.name) and a.attnum > 0
  group by t.name
$column_slots$;

-- shape_build(...): runs the DDL of a table that is being built, which no other session sees.
create or replace function {{swap}}.shape_build(p_epoch bigint, p_statements text[]) returns void
language plpgsql as $shape_build$
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.run_all(p_statements);
end $shape_build$;

-- drop_build(epoch, name, settled): drops a table that was being built, if it exists. A dump may hold it until the dump
-- ends.
create or replace function {{swap}}.drop_build(p_epoch bigint, p_name text, p_settled text[]) returns void
language plpgsql as $drop_build$
declare
  v_build text := format('{{swap}}.%I', p_name);
begin
  perform {{swap}}.fence(p_epoch);
  if to_regclass(v_build) is null then
    return;
  end if;
  perform {{swap}}.lock_exclusively(v_build, clock_timestamp() + interval '1 second');
  execute format('drop table %s', v_build);
  perform {{swap}}.may_change(p_settled);
end $drop_build$;

-- drop_builds(epoch, kept): drops tables that ended leases were building, except these. They cost space only: those that
-- others hold, or that an event trigger protects, are left for the next time.
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
    exception when others then null;
    end;
  end loop;
end $drop_builds$;
