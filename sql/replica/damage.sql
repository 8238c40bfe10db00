-- Detects tables of ours that somebody else has dropped, truncated or altered, as the owner of a database can.
-- Installed with install.sql.

-- record_damage(epoch): marks tables that must be rebuilt, because they or some of their columns no longer exist.
-- Returns the ids of tables whose rows may be others: they have a new file (truncate, vacuum full, a restore), or another
-- owner.
create or replace function {{swap}}.record_damage(p_epoch bigint) returns text[]
language plpgsql set plan_cache_mode = force_generic_plan as $record_damage$
declare
  v_emptied text[];
begin
  perform {{swap}}.fence(p_epoch);
  update {{swap}}._tables as t set spec = t.spec || '{"isDamaged": true}', shape = nextval('{{swap}}._shapes')
  where not t.spec ? 'isDamaged' and not {{swap}}.is_whole(t.name, t.spec);
  with found as (
    select t.table_id, t.file, {{swap}}.own_file(t.name) as now from {{swap}}._tables as t
  ), noted as (
    update {{swap}}._tables as t set file = f.now from found as f
    where t.table_id = f.table_id and f.now is distinct from f.file
    returning t.table_id, f.file as before, f.now
  )
  select coalesce(array_agg(n.table_id), '{}') into v_emptied from noted as n
  where n.before is not null and n.now is not null;
  return v_emptied;
end $record_damage$;

-- renew(epoch, renewals): renews a lease that was renewed so often before. Returns false if it must end, because the tables
-- or views are not as record_damage and the installation left them, or because the server has lost commits of this lease:
-- what it has done since its last renewal may be missing then.
create or replace function {{swap}}.renew(p_epoch bigint, p_renewals integer) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan as $renew$
begin
  perform {{swap}}.fence(p_epoch);
  -- A renewal that the caller does not count would seem to be one that it has lost.
  if not {{swap}}.is_as_left() then
    return false;
  end if;
  update {{swap}}._state as s set renewals = p_renewals + 1 where s.renewals = p_renewals;
  return found;
end $renew$;

-- mark_at_rest(epoch, ago): mark_sync_unchanged, for a base at rest. Returns false if the lease must end, so that the next
-- one records damage and restores what is missing.
create or replace function {{swap}}.mark_at_rest(p_epoch bigint, p_ago interval) returns boolean
language plpgsql as $mark_at_rest$
begin
  perform {{swap}}.mark_sync_unchanged(p_epoch, p_ago);
  return {{swap}}.is_as_left();
end $mark_at_rest$;

-- is_as_left(): returns whether the tables are as record_damage left them, and whether the readers' views and _sync_issues
-- exist. A table that was moved in since then has its new one.
create or replace function {{swap}}.is_as_left() returns boolean language plpgsql stable as $is_as_left$
begin
  return to_regclass('{{schema}}._sync_meta') is not null and to_regclass('{{schema}}.__sync_meta__') is not null
    and to_regclass('{{schema}}._sync_issues') is not null
    and not exists (
      select from {{swap}}._tables as t
      where not t.spec ? 'isDamaged' and not {{swap}}.is_whole(t.name, t.spec)
        or t.file <> {{swap}}.own_file(t.name));
end $is_as_left$;

-- live_table(name): the table of that name in {{schema}}, or null.
create or replace function {{swap}}.live_table(p_name text) returns oid language sql stable as $live_table$
  select c.oid from pg_class as c
  where c.relnamespace = to_regnamespace('{{schema}}') and c.relname = p_name and c.relkind = 'r'
$live_table$;

-- own_file(name): pg_relation_filenode() of the live table; 0 while it belongs to another role.
create or replace function {{swap}}.own_file(p_name text) returns oid language sql stable as $own_file$
  select case when c.relowner = {{swap}}.our_role() then pg_relation_filenode(c.oid) else 0 end
  from pg_class as c where c.oid = {{swap}}.live_table(p_name)
$own_file$;

-- is_whole(name, spec): returns whether the table and all columns of its spec exist.
create or replace function {{swap}}.is_whole(p_name text, p_spec jsonb) returns boolean language plpgsql stable as $is_whole$
declare
  v_table oid := {{swap}}.live_table(p_name);
begin
  return v_table is not null and not exists (
    select w.name from jsonb_to_recordset(p_spec -> 'columns') as w (name text)
    union all select unnest(array['id', 'created_time'])
    except
    select a.attname from pg_attribute as a where a.attrelid = v_table and a.attnum > 0 and not a.attisdropped);
end $is_whole$;

-- leftovers(): tables of ours that the catalog does not know, from a replica that was partly restored or removed. Their
-- comments say which tables of the source they are copies of.
create or replace function {{swap}}.leftovers() returns table (name name, table_id text)
language sql stable as $leftovers$
  -- There are few of them, and only their comments are looked up. The names are hashed: without statistics, Postgres would
  -- compare each with each.
  with own as materialized (
    select c.oid, c.relname from pg_class as c
    where c.relnamespace = '{{schema}}'::regnamespace and c.relkind = 'r' and c.relowner = (select {{swap}}.our_role())
  ), unknown as materialized (
    select o.oid, o.relname from own as o
    where o.relname !~ '^_' and o.relname not in (select t.name::name from {{swap}}._tables as t)
  )
  select u.relname, split_part(obj_description(u.oid, 'pg_class'), e'\n\n', 2) from unknown as u
$leftovers$;

-- leftover_row(table_id): a catalog row for the leftover, as far as its comments tell.
create or replace function {{swap}}.leftover_row(p_table text) returns {{swap}}._tables language plpgsql as $leftover_row$
declare
  v_row {{swap}}._tables;
  v_table oid;
begin
  select min(l.name::text) into v_row.name from {{swap}}.leftovers() as l where l.table_id = p_table;
  if v_row.name is null then
    return v_row;
  end if;
  v_table := {{swap}}.live_table(v_row.name);
  select jsonb_build_object('columns', coalesce(jsonb_agg(jsonb_build_object(
      'name', a.attname, 'fieldId', split_part(split_part(d.text, e'\n\n', 2), ', ', 1))), '[]'))
  into v_row.spec
  from pg_attribute as a cross join col_description(a.attrelid, a.attnum) as d (text)
  where a.attrelid = v_table and a.attnum > 0 and not a.attisdropped and d.text is not null;
  return v_row;
end $leftover_row$;
