-- Drops columns of deleted fields in place, if only the table itself has them. Installed with install.sql.

-- going_columns(live, table): the live table's columns that the new shape no longer has.
create or replace function {{swap}}.going_columns(p_live {{swap}}._tables, p_table jsonb)
returns table (attnum smallint, name name) language sql as $going_columns$
  select a.attnum, a.attname
  from jsonb_to_recordset(p_live.spec -> 'columns') as o ("fieldId" text, name text)
    join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name)) and a.attname = o.name
      and a.attnum > 0 and not a.attisdropped
  where o."fieldId" not in (select n."fieldId" from jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text))
$going_columns$;

-- rules_that_go(live, table): the rules of our views over columns that go, if the view goes with them and nothing else
-- needs it.
create or replace function {{swap}}.rules_that_go(p_live {{swap}}._tables, p_table jsonb) returns oid[]
language plpgsql stable as $rules_that_go$
begin
  return array(
    select r.oid from {{swap}}._link_views as l
      join pg_rewrite as r on r.ev_class = {{swap}}.own_view(l.name)
    where l.table_id = p_live.table_id
      and l.field_id not in (select n."fieldId" from jsonb_to_recordset(p_table #> '{spec,columns}') as n ("fieldId" text))
      and not exists (select from {{swap}}.dependent_views(array[r.ev_class]))
      and not exists (select from {{swap}}.dependents_of(array[r.ev_class])));
end $rules_that_go$;

-- can_drop_columns(live, table): returns whether nothing depends on them, and nothing that others put on them would be
-- lost silently.
create or replace function {{swap}}.can_drop_columns(p_live {{swap}}._tables, p_table jsonb) returns boolean
language sql as $can_drop_columns$
  with going as materialized (
    select a.* from {{swap}}.going_columns(p_live, p_table) as g
      join pg_attribute as a on a.attrelid = to_regclass(format('{{schema}}.%I', p_live.name)) and a.attnum = g.attnum
  )
  select p_live.name = p_table ->> 'name' and not p_live.spec ? 'isDamaged'
    and (select count(*) from going) =
      jsonb_array_length(p_live.spec -> 'columns') - jsonb_array_length(p_table #> '{spec,columns}')
    and not exists (
      select from going as g
      where g.attacl is not null or g.attoptions is not null or g.attnotnull or g.atthasdef or g.attidentity <> '')
    and not exists (
      select from pg_depend as d join going as g on d.refobjid = g.attrelid and d.refobjsubid = g.attnum
      where d.refclassid = 'pg_class'::regclass and not exists (
        -- Aliases go with their columns.
        select from {{swap}}.alias_columns(g.attrelid, p_live.table_id) as a
          left join pg_attrdef as f on (f.adrelid, f.adnum) = (g.attrelid, a.attnum)
        where not a.is_needed and ((d.classid, d.objid) = ('pg_attrdef'::regclass, f.oid)
          or (d.classid, d.objid, d.objsubid) = ('pg_class'::regclass, g.attrelid, a.attnum))
      ) and not exists (
        -- So do the columns of an alias of the table.
        select from {{swap}}._aliases as a join pg_rewrite as r on r.ev_class = a.view
        where d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
          and not exists (select from {{swap}}.dependent_views(array[a.view]))
      ) and not (d.classid = 'pg_rewrite'::regclass and d.objid = any ({{swap}}.rules_that_go(p_live, p_table))))
    and not exists (
      select from pg_inherits as i where i.inhparent = to_regclass(format('{{schema}}.%I', p_live.name)))
$can_drop_columns$;

-- drop_columns(…): drops the live table's columns that its new catalog row does not have. False, with nothing done, if
-- something depends on them: swap in a new table. BT002: the live table has another shape than p_shape.
--   p_timeout   longest wait for all locks together
--   p_renames   rename other columns to names that become free      p_statements  run at the end
--   p_settled   sessions that read the catalog and had time to lock what they found; null: all of them
create or replace function {{swap}}.drop_columns(
  p_epoch bigint, p_timeout text, p_shape integer, p_table jsonb, p_renames text[], p_statements text[], p_settled text[]
) returns boolean language plpgsql as $drop_columns$
declare
  v_name text := p_table ->> 'name';
  v_live {{swap}}._tables;
  v_going name[];
  v_links oid[];
  v_changing oid[];
  v_deadline timestamptz;
  v_views jsonb[];
begin
  perform {{swap}}.fence(p_epoch);
  perform set_config('lock_timeout', p_timeout, true);
  perform {{swap}}.lock_table(p_table ->> 'table_id');
  select * into v_live from {{swap}}._tables as t where t.table_id = p_table ->> 'table_id';
  if v_live.shape is distinct from p_shape then
    raise exception 'table % has shape %, not %', v_name, v_live.shape, p_shape using errcode = 'BT002';
  end if;
  if not {{swap}}.can_drop_columns(v_live, p_table) then
    return false;
  end if;
  perform {{swap}}.probe_table(v_name, p_timeout);
  perform {{swap}}.own_table(v_name);
  v_going := array(select g.name from {{swap}}.going_columns(v_live, p_table) as g);
  delete from {{swap}}._sync_issues where table_name = v_name and field = any (v_going) and record_id <> '';
  -- The customer's deferred triggers would block the change.
  set constraints all immediate;

  perform {{swap}}.lock_for_links();
  perform {{swap}}.set_catalog(jsonb_build_array(p_table));
  v_links := {{swap}}.going_link_views();
  v_changing := {{swap}}.changing_link_views();
  v_deadline := clock_timestamp() + {{swap}}.lock_patience(
    array[format('{{schema}}.%I', v_name)::regclass::oid], p_timeout::interval);
  v_views := {{swap}}.lock_views(v_links, v_deadline);
  perform {{swap}}.lock_link_views(v_changing, v_deadline);
  perform {{swap}}.lock_relations(array[v_name], v_deadline);
  perform {{swap}}.clear_aliases(jsonb_build_object(v_live.table_id, {{swap}}.live_table(v_name)));
  perform {{swap}}.drop_alias_views() where not exists (
    select from unnest({{swap}}.going_alias_views()) as a (view), {{swap}}.dependent_views(array[a.view]));
  -- From here on no other session can put anything on them.
  if not {{swap}}.can_drop_columns(v_live, p_table) then
    raise exception 'an object now depends on columns of table %', v_name using errcode = 'BT002';
  end if;
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  perform {{swap}}.run_all(array(
    select format('alter table {{schema}}.%I drop column %I', v_name, g) from unnest(v_going) as g));
  perform {{swap}}.run_all(p_renames);
  perform {{swap}}.run_all(p_statements);
  perform {{swap}}.make_link_views();
  perform {{swap}}.make_views(v_views);
  perform {{swap}}.adopt_orphans();
  if (select s.notify from {{swap}}._state as s) then
    perform {{swap}}.notify_listeners(jsonb_build_object('table', v_name, 'rebuilt', true));
  end if;
  perform {{swap}}.may_change(p_settled);
  return true;
end $drop_columns$;
