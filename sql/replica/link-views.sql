-- Views over link arrays and over attachments, by the base's settings: <table>__<column>, one row per link or file.
-- Installed with install.sql. Below, "link view" means both.
--
-- A view over attachments belongs to the column with the details of the files, whose "filesOf" in the catalog is the
-- field of the attachments (core/replica/file-columns.ts): it exists as long as that column does. It takes the URLs from
-- the column of the attachments, so that URLs which change leave the details as they are.
--
-- They change in the transaction that changes the tables under them, so they are never missing or inconsistent.
-- Customers' views over them are preserved like those over tables (views.sql): a view follows a renamed one, and
-- becomes an orphan when its link view is dropped.

create table if not exists {{swap}}._link_views (
  table_id text not null,
  field_id text not null,
  -- Its name unless that is taken.
  stem text not null,
  name text not null,
  -- Its columns for the linking record and the linked record, or for the record and the attachment's id.
  columns text[] not null,
  constraint _link_views_pkey primary key (table_id, field_id)
);

-- link_view_stem(table, column): the two names joined by __, which no table's name contains. If they are too long
-- together, each keeps at least 30 of its bytes.
create or replace function {{swap}}.link_view_stem(p_table text, p_column text) returns text
language plpgsql immutable as $stem$
declare
  v_column text := {{swap}}.cut_name(p_column, greatest(61 - octet_length(p_table), 30));
begin
  return {{swap}}.cut_name(p_table, 61 - octet_length(v_column)) || '__' || v_column;
end $stem$;

-- wanted_link_views(): the views that should exist, by the setting and the catalog. A view keeps its name while the
-- names that it is derived from stay; of views with the same stem, the first by id gets it.
create or replace function {{swap}}.wanted_link_views() returns setof {{swap}}._link_views
language plpgsql as $wanted$
declare
  v_links boolean := (select s.link_views from {{swap}}._state as s);
  one record;
  v_stem text;
  v_taken text[];
  wanted {{swap}}._link_views;
begin
  if not v_links and not exists (select from {{swap}}._tables as t where t.has_files) then
    return;
  end if;
  v_taken := array(
    select t.name from {{swap}}._tables as t
    union select c.relname from pg_class as c
      where c.relnamespace = '{{schema}}'::regnamespace and (c.relowner <> {{swap}}.our_role()
        or not exists (select from {{swap}}._link_views as l where l.name = c.relname))
    union select y.typname from pg_type as y where y.typnamespace = '{{schema}}'::regnamespace and y.typrelid = 0
  );
  for one in
    select t.table_id, t.name as table_name, c."fieldId" as field_id, v.name as column_name,
      c."filesOf" is not null as has_files, l.stem, l.name as had
    from {{swap}}._tables as t
      cross join jsonb_to_recordset(t.spec -> 'columns')
        as c ("fieldId" text, name text, type text, "columnType" text, "filesOf" text)
      cross join lateral (
        select case when c."filesOf" is null then c.name else (
          select f.name from jsonb_to_recordset(t.spec -> 'columns') as f ("fieldId" text, name text)
          where f."fieldId" = c."filesOf") end
      ) as v (name)
      left join {{swap}}._link_views as l on (l.table_id, l.field_id) = (t.table_id, c."fieldId")
    where (v_links or t.has_files) and v.name is not null
      and (c."filesOf" is not null or v_links and c.type = 'links' and c."columnType" = 'text[]')
    order by l.stem is distinct from {{swap}}.link_view_stem(t.name, v.name),
      t.table_id collate "C", c."fieldId" collate "C"
  loop
    v_stem := {{swap}}.link_view_stem(one.table_name, one.column_name);
    wanted.table_id := one.table_id;
    wanted.field_id := one.field_id;
    wanted.stem := v_stem;
    wanted.name := case when one.stem = v_stem then one.had else v_stem end;
    for nth in 2 .. 10000 loop
      exit when wanted.name <> all (v_taken);
      wanted.name := {{swap}}.cut_name(v_stem, 63 - length('_' || nth)) || '_' || nth;
    end loop;
    wanted.columns := array[{{swap}}.cut_name(one.table_name, 60) || '_id', case when one.has_files
      then 'attachment_id' else {{swap}}.cut_name(one.column_name, 60) || '_id' end];
    if wanted.columns[1] = wanted.columns[2] then
      wanted.columns[2] := case when one.has_files
        then 'file_id' else {{swap}}.cut_name('linked_' || one.column_name, 60) || '_id' end;
    end if;
    v_taken := v_taken || wanted.name;
    return next wanted;
  end loop;
end $wanted$;

-- own_relation(name, kind): the view or index of ours that has this name; null if there is none, or it is somebody else's.
create or replace function {{swap}}.own_relation(p_name text, p_kind "char") returns oid language sql stable as $own_relation$
  select c.oid from pg_class as c
  where c.relnamespace = '{{schema}}'::regnamespace and c.relname = p_name and c.relkind = p_kind
    and c.relowner = {{swap}}.our_role()
$own_relation$;

-- link_view_changes(): views that differ from what is wanted; had is null for new ones, wanted for those to drop.
create or replace function {{swap}}.link_view_changes() returns table (
  had {{swap}}._link_views, wanted {{swap}}._link_views, view oid
) language sql as $changes$
  select l, w, {{swap}}.own_relation(l.name, 'v')
  from {{swap}}._link_views as l
    full join {{swap}}.wanted_link_views() as w on (w.table_id, w.field_id) = (l.table_id, l.field_id)
  where l is distinct from w or {{swap}}.own_relation(l.name, 'v') is null
$changes$;

-- changing_views(): those that change (goes: to be dropped), and aliases of tables and views to write to that are to be
-- dropped or created again.
create or replace function {{swap}}.changing_views() returns table (view oid, goes boolean) language sql as $changing$
  select c.view, (c.wanted).name is null from {{swap}}.link_view_changes() as c where c.view is not null
  union all select s.view, true from {{swap}}.stale_alias_views() as s where s.view is not null
  union all select s.view, true from {{swap}}.stale_write_views() as s where s.view is not null
$changing$;

-- lock_link_views(views, deadline): locks these exclusively.
create or replace function {{swap}}.lock_link_views(p_views oid[], p_deadline timestamptz) returns void
language plpgsql as $lock_link_views$
declare
  one record;
begin
  for one in
    select c.oid::regclass as name, o.rolname as owner
    from pg_class as c join pg_roles as o on o.oid = c.relowner
    where c.oid = any (p_views) order by c.relname
  loop
    perform {{swap}}.wait_until(p_deadline);
    execute format('alter view %s owner to %I', one.name, one.owner);
  end loop;
end $lock_link_views$;

-- rename_link_views(): renames the views that stay in one step, because some may exchange names; those to drop make room.
-- Runs before any is dropped, so that customers' views over them follow.
create or replace function {{swap}}.rename_link_views() returns void language plpgsql as $rename_link_views$
declare
  v_had {{swap}}._link_views[];
  v_wanted {{swap}}._link_views[];
  v_asides text[] := '{}';
begin
  select array_agg(c.had), array_agg(c.wanted) into v_had, v_wanted from {{swap}}.link_view_changes() as c
  where c.view is not null and ((c.wanted).name is not null
    or (c.had).name in (select (o.wanted).name from {{swap}}.link_view_changes() as o where o.view is not null));
  for nth in 1 .. coalesce(cardinality(v_had), 0) loop
    v_asides[nth] := {{swap}}.unused_name();
    execute format('alter view {{schema}}.%I rename to %I', v_had[nth].name, v_asides[nth]);
    if v_wanted[nth].name is null then
      update {{swap}}._link_views as l set name = v_asides[nth]
      where (l.table_id, l.field_id) = (v_had[nth].table_id, v_had[nth].field_id);
      continue;
    end if;
    execute format('alter view {{schema}}.%I rename column %I to _renaming_1', v_asides[nth], v_had[nth].columns[1]);
    execute format('alter view {{schema}}.%I rename column %I to _renaming_2', v_asides[nth], v_had[nth].columns[2]);
    execute format('alter view {{schema}}.%I rename column _renaming_1 to %I', v_asides[nth], v_wanted[nth].columns[1]);
    execute format('alter view {{schema}}.%I rename column _renaming_2 to %I', v_asides[nth], v_wanted[nth].columns[2]);
    delete from {{swap}}._link_views as l
    where (l.table_id, l.field_id) = (v_had[nth].table_id, v_had[nth].field_id);
  end loop;
  for nth in 1 .. cardinality(v_asides) loop
    continue when v_wanted[nth].name is null;
    execute format('alter view {{schema}}.%I rename to %I', v_asides[nth], v_wanted[nth].name);
    insert into {{swap}}._link_views select (v_wanted[nth]).*;
    perform {{swap}}.describe_link_view(v_wanted[nth]);
  end loop;
end $rename_link_views$;

-- drop_link_views(): drops those to drop, unless they were dropped with their table; and stale aliases of tables and views
-- to write to.
create or replace function {{swap}}.drop_link_views() returns void language plpgsql as $drop_link_views$
declare
  one {{swap}}._link_views;
begin
  foreach one in array array(
    select c.had from {{swap}}.link_view_changes() as c where (c.wanted).name is null
  ) loop
    if {{swap}}.own_relation(one.name, 'v') is not null then
      perform {{swap}}.drop_own({{swap}}.own_relation(one.name, 'v'));
    end if;
    delete from {{swap}}._link_views as l where (l.table_id, l.field_id) = (one.table_id, one.field_id);
  end loop;
  perform {{swap}}.drop_alias_views();
  perform {{swap}}.drop_write_views();
end $drop_link_views$;

-- make_link_views(): creates the missing ones, and the missing aliases and views to write to.
create or replace function {{swap}}.make_link_views() returns void language plpgsql as $make_link_views$
declare
  one {{swap}}._link_views;
begin
  foreach one in array array(select c.wanted from {{swap}}.link_view_changes() as c where c.view is null) loop
    execute {{swap}}.link_view_statement(one);
    perform {{swap}}.show_relation(one.name);
    insert into {{swap}}._link_views select (one).*
    on conflict (table_id, field_id) do update
      set stem = excluded.stem, name = excluded.name, columns = excluded.columns;
    perform {{swap}}.describe_link_view(one);
  end loop;
  perform {{swap}}.make_alias_columns();
  perform {{swap}}.make_alias_views();
  perform {{swap}}.make_write_views();
end $make_link_views$;

-- link_view_statement(view): creates it in {{swap}}.
create or replace function {{swap}}.link_view_statement(p_view {{swap}}._link_views) returns text
language plpgsql as $statement$
declare
  n record;
begin
  select * into n from {{swap}}.viewed_columns(p_view);
  if n.files_name is null then
    return format(
      'create view {{swap}}.%I as
       select t.id as %I, l.nth::integer as "position", l.id as %I
       from {{schema}}.%I as t cross join lateral unnest(t.%I) with ordinality as l (id, nth) where l.id is not null',
      p_view.name, p_view.columns[1], p_view.columns[2], n.table_name, n.column_name);
  end if;
  return format(
    'create view {{swap}}.%I as
     select t.id as %I, f.nth::integer as "position", f.file ->> ''id'' as %I, f.file ->> ''filename'' as "filename",
       f.file ->> ''type'' as "type", (f.file ->> ''size'')::bigint as "size", (f.file ->> ''width'')::integer as "width",
       (f.file ->> ''height'')::integer as "height", t.%I[f.nth::integer] as "url"
     from {{schema}}.%I as t cross join lateral jsonb_array_elements(t.%I) with ordinality as f (file, nth)
     where jsonb_typeof(f.file) = ''object''',
    p_view.name, p_view.columns[1], p_view.columns[2], n.column_name, n.table_name, n.files_name);
end $statement$;

-- viewed_columns(view): the names of its table and of the column that it expands into rows; files_name: of the column
-- with the details of attachments.
create or replace function {{swap}}.viewed_columns(
  p_view {{swap}}._link_views, out table_name text, out column_name text, out files_name text
) language sql as $viewed$
  select t.name, coalesce(f.name, c.name), case when f.name is not null then c.name end
  from {{swap}}._tables as t
    cross join jsonb_to_recordset(t.spec -> 'columns') as c ("fieldId" text, name text, "filesOf" text)
    left join jsonb_to_recordset(t.spec -> 'columns') as f ("fieldId" text, name text) on f."fieldId" = c."filesOf"
  where t.table_id = p_view.table_id and c."fieldId" = p_view.field_id
$viewed$;

create or replace function {{swap}}.describe_link_view(p_view {{swap}}._link_views) returns void
language plpgsql as $describe$
declare
  n record;
begin
  select * into n from {{swap}}.viewed_columns(p_view);
  execute format('comment on view {{schema}}.%I is %L', p_view.name, format(
    case when n.files_name is null
      then 'One row per link of %I.%I: %I links to %I, at this position in the array, counted from 1.'
      else 'One row per attachment of %I.%I: %I has %I, at this position in the cell, counted from 1. size is in bytes, width and height in pixels.' end,
    n.table_name, n.column_name, p_view.columns[1], p_view.columns[2]));
end $describe$;

-- has_views(table): returns whether a view may have to change with this row of the catalog: one of ours, or one of the
-- customer's that waits for a table.
create or replace function {{swap}}.has_views(p_table jsonb) returns boolean language sql stable as $has_views$
  select s.link_views or s.sql_writes or jsonb_path_exists(p_table, '$.spec.columns[*].filesOf')
    or exists (select from {{swap}}._link_views) or exists (select from {{swap}}._aliases)
    or exists (select from {{swap}}._write_views) or exists (select from {{swap}}._orphaned_views)
    or exists (select from {{swap}}._kept_views)
  from {{swap}}._state as s
$has_views$;

-- lock_for_links(): serializes changes of the views. Taken before any other lock on a table or a view, but for that on a build.
create or replace function {{swap}}.lock_for_links() returns void language sql as $lock_for_links$
  select pg_advisory_xact_lock(hashtextextended({{swap_text}} || ' links', 0))
$lock_for_links$;

-- apply_link_views(epoch, wanted): creates or drops the views, and repairs missing ones. Null: as before.
create or replace function {{swap}}.apply_link_views(p_epoch bigint, p_wanted boolean) returns void
language plpgsql set plan_cache_mode = force_generic_plan as $apply_link_views$
declare
  v_views jsonb[];
begin
  perform {{swap}}.fence(p_epoch);
  perform {{swap}}.wait_until({{swap}}.soon());
  perform {{swap}}.lock_for_links();
  update {{swap}}._state as s set link_views = p_wanted where s.link_views <> p_wanted;
  if not exists (select from {{swap}}.link_view_changes()) and not exists (select from {{swap}}.stale_alias_views())
    and not {{swap}}.write_views_differ()
  then
    return;
  end if;
  v_views := (select l.views from {{swap}}.lock_all('{}', '{}') as l);
  perform {{swap}}.rename_link_views();
  v_views := {{swap}}.drop_views(v_views);
  perform {{swap}}.drop_link_views();
  perform {{swap}}.make_again(v_views);
end $apply_link_views$;
