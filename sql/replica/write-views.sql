-- Views to write to, by the base's setting: {{write}}.<table>, with the columns of the table. Installed with install.sql;
-- what their triggers do is in write-door.sql, which is installed when the setting is turned on.
--
-- They change in the transaction that changes the tables under them. A view whose table gets other columns or another
-- name is created again, and keeps its grants.

create table if not exists {{swap}}._write_views (
  table_id text not null,
  name text not null,
  view oid,
  -- The query that it was created with.
  definition text not null,
  -- Of the view that was there: [{"grantee", "privilege", "field"}]; "field" is the column's field, or its name, and null for all.
  grants jsonb not null default '[]',
  constraint _write_views_pkey primary key (table_id)
);

-- wanted_write_views(): the views that should exist. A table of which some records are left out has none: a record that
-- is written might not be in SQL afterwards. "log" is the name of the view of all writes.
-- While a table is renamed, the catalog has its new name already.
create or replace function {{swap}}.wanted_write_views() returns table (
  table_id text, table_name text, name text, definition text
) language sql stable as $wanted_write_views$
  select t.table_id, t.name, case t.name when 'log' then 'log_' else t.name end,
    format('select t.id, t.created_time%s from {{schema}}.%I as t', (
      select string_agg(format(', t.%I', c.value ->> 'name'), '' order by c.nth)
      from jsonb_array_elements(t.spec -> 'columns') with ordinality as c (value, nth)), t.name)
  from {{swap}}._state as s, {{swap}}._tables as t
  where s.sql_writes and t.spec ->> 'partial' is distinct from 'records'
$wanted_write_views$;

-- stale_write_views(): those to drop, or to create again.
create or replace function {{swap}}.stale_write_views() returns table (table_id text, view oid, is_wanted boolean)
language sql stable as $stale_write_views$
  select v.table_id, c.oid, w.table_id is not null
  from {{swap}}._write_views as v left join {{swap}}.wanted_write_views() as w using (table_id)
    left join pg_class as c on c.oid = v.view and c.relkind = 'v' and c.relowner = {{swap}}.our_role()
  where w.table_id is null
    or v.view is not null and (c.oid is null or (v.name, v.definition) is distinct from (w.name, w.definition))
$stale_write_views$;

-- write_views_differ(): returns whether a view must be dropped or created.
create or replace function {{swap}}.write_views_differ() returns boolean language sql stable as $write_views_differ$
  select exists (select from {{swap}}.stale_write_views()) or exists (
    select from {{swap}}.wanted_write_views() as w left join {{swap}}._write_views as v using (table_id)
    where v.view is null and {{swap}}.live_table(w.table_name) is not null)
$write_views_differ$;

-- written_field(table id, column): the id of the column's field.
create or replace function {{swap}}.written_field(p_table text, p_column name) returns text
language plpgsql stable as $written_field$
begin
  return (select f.field_id from {{write_own}}.fields as f where f.table_id = p_table and f.name = p_column);
exception when undefined_table or invalid_schema_name then
  return null;
end $written_field$;

-- record_written_types(tables): a field may get another type whose column is the same. Then its view stays as it is.
create or replace function {{swap}}.record_written_types(p_tables jsonb) returns void
language plpgsql as $record_written_types$
begin
  if to_regclass('{{write_own}}.fields') is null then
    return;
  end if;
  insert into {{write_own}}.fields (table_id, field_id, name, source_name, type, is_writable)
  select f.table_id, f.field_id, f.name, f.source_name, c.type,
    c."filesOf" is null and c.type = any ({{write_own}}.writable_types())
  from {{write_own}}.fields as f join jsonb_to_recordset(p_tables) as t (table_id text, spec jsonb) using (table_id)
    join jsonb_to_recordset(t.spec -> 'columns') as c ("fieldId" text, type text, "filesOf" text) on c."fieldId" = f.field_id
  where c.type <> f.type
  on conflict (table_id, field_id) do update set type = excluded.type, is_writable = excluded.is_writable;
end $record_written_types$;

-- drop_write_view(view): drops a view of ours; the grants of one to write to are kept for the next one.
create or replace function {{swap}}.drop_write_view(p_view oid) returns void language plpgsql as $drop_write_view$
begin
  update {{swap}}._write_views as v set view = null, grants = (
    select coalesce(jsonb_agg(jsonb_build_object(
      'grantee', {{swap}}.role_name(a.grantee), 'privilege', a.privilege_type, 'field', g.field)), '[]')
    from (
      select c.relacl as acl, c.relowner as owner, null as field from pg_class as c where c.oid = p_view
      union all
      select a.attacl, c.relowner, coalesce({{swap}}.written_field(v.table_id, a.attname), a.attname)
      from pg_attribute as a join pg_class as c on c.oid = a.attrelid
      where a.attrelid = p_view and a.attacl is not null
    ) as g cross join aclexplode(g.acl) as a
    where a.grantee <> g.owner)
  where v.view = p_view;
  perform {{swap}}.drop_own(p_view);
end $drop_write_view$;

-- drop_write_views(): drops those to drop, unless they were dropped with their table.
create or replace function {{swap}}.drop_write_views() returns void language plpgsql as $drop_write_views$
declare
  one record;
begin
  for one in select * from {{swap}}.stale_write_views() loop
    if one.view is not null then
      perform {{swap}}.drop_write_view(one.view);
    end if;
    if one.is_wanted then
      update {{swap}}._write_views as v set view = null where v.table_id = one.table_id;
    else
      delete from {{swap}}._write_views as v where v.table_id = one.table_id;
    end if;
  end loop;
end $drop_write_views$;

-- make_write_views(): creates the missing ones, with the grants of those that were there.
create or replace function {{swap}}.make_write_views() returns void language plpgsql as $make_write_views$
declare
  one record;
  v_grant record;
  v_view oid;
begin
  if to_regclass('{{write_own}}.fields') is null then
    return;
  end if;
  delete from {{write_own}}.fields as f
  where not exists (select from {{swap}}._write_views as v where v.table_id = f.table_id and v.view is not null);
  for one in
    select w.*, coalesce(v.grants, '[]') as grants from {{swap}}.wanted_write_views() as w
      left join {{swap}}._write_views as v using (table_id)
    where v.view is null and {{swap}}.live_table(w.table_name) is not null
      and to_regclass(format('{{write}}.%I', w.name)) is null
  loop
    execute format('create view {{write}}.%I as %s', one.name, one.definition);
    v_view := format('{{write}}.%I', one.name)::regclass;
    execute format(
      'create trigger write instead of insert or update or delete on {{write}}.%I
       for each row execute function {{write_own}}.write_row(%L)', one.name, one.table_id);
    execute format('grant select on {{write}}.%I to %I', one.name, {{write_own}}.owner());
    execute format('comment on view {{write}}.%I is %L', one.name,
      format('Writes to %s: Airtable gets them.', {{swap}}.shown_name(one.name)));
    insert into {{swap}}._write_views (table_id, name, view, definition)
    values (one.table_id, one.name, v_view, one.definition)
    on conflict (table_id) do update
      set name = excluded.name, view = excluded.view, definition = excluded.definition;
    insert into {{write_own}}.fields (table_id, field_id, name, source_name, type, is_writable)
    select one.table_id, c."fieldId", c.name, c."sourceName", c.type,
      c."filesOf" is null and c.type = any ({{write_own}}.writable_types())
    from {{swap}}._tables as t
      cross join jsonb_to_recordset(t.spec -> 'columns')
        as c ("fieldId" text, name text, "sourceName" text, type text, "filesOf" text)
    where t.table_id = one.table_id;
    for v_grant in
      select g.grantee, g.privilege, case when g.field is not null then format(' (%I)', a.attname) end as columns
      from jsonb_to_recordset(one.grants) as g (grantee text, privilege text, field text)
        left join {{write_own}}.fields as f on f.table_id = one.table_id and f.field_id = g.field
        left join pg_attribute as a on a.attrelid = v_view and a.attname = coalesce(f.name, g.field) and a.attnum > 0
      where (g.grantee = 'public' or to_regrole(g.grantee) is not null) and (g.field is null or a.attname is not null)
    loop
      execute format('grant %s%s on {{write}}.%I to %s', v_grant.privilege, v_grant.columns, one.name, v_grant.grantee);
    end loop;
  end loop;
end $make_write_views$;
